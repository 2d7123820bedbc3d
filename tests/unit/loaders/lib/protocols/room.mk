# Unit tests of loaders/lib/protocols: conversations from the specifications, played whole and in every cut.
PROTOCOL_TESTS := conn http redis postgres mysql dns http2 tls memcached nats mongo kafka amqp mqtt cassandra fastcgi zookeeper dubbo foundationdb clickhouse bombs traceid
$(foreach t,$(PROTOCOL_TESTS),$(eval $(call unit_test,protocols_$(t)_test,tests/unit/loaders/lib/protocols/$(t)_test.c,protocols base,-lz -lzstd)))
