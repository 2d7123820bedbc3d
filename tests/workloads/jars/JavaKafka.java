// SPDX-License-Identifier: Apache-2.0
// A producer and a consumer for a Kafka broker, inside TLS or plain: one request for each record that is stored.
//   JavaKafka BOOTSTRAP KEYS JMX-PORT; KEYS: -: plain. Prints 0; then for each line one of JSON:
//   store TOPIC N   {"end": how far the topic's end is, as the broker says}
//   fetch TOPIC N   {"fetched": N records from the topic's begin}
//   counts          {API: requests that the broker has answered, by its own counter}
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import java.util.TreeMap;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class JavaKafka {
	private static KafkaProducer<String, String> to;
	private static KafkaConsumer<String, String> from;
	private static MBeanServerConnection broker;

	private JavaKafka() {
	}

	private static String store(String topic, int n) throws Exception {
		TopicPartition all = new TopicPartition(topic, 0);

		for (int i = 0; i < n; i++)
			to.send(new ProducerRecord<>(topic, "record " + i)).get();
		return "{\"end\": " + from.endOffsets(Collections.singleton(all)).get(all) + "}";
	}

	private static String fetch(String topic, int n) {
		TopicPartition all = new TopicPartition(topic, 0);
		int got = 0;

		from.assign(Collections.singleton(all));
		from.seekToBeginning(Collections.singleton(all));
		while (got < n)
			got += from.poll(Duration.ofSeconds(1)).count();
		return "{\"fetched\": " + got + "}";
	}

	private static String counts() throws Exception {
		TreeMap<String, Long> n = new TreeMap<>();
		StringBuilder out = new StringBuilder();

		for (ObjectName o : broker.queryNames(new ObjectName("kafka.network:type=RequestMetrics,name=RequestsPerSec,*"), null))
			n.merge(o.getKeyProperty("request"), (Long) broker.getAttribute(o, "Count"), Long::sum);
		n.forEach((k, v) -> out.append(out.length() > 0 ? ", " : "").append('"').append(k).append("\": ").append(v));
		return "{" + out + "}";
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		Properties p = new Properties();

		p.put("bootstrap.servers", args[0]);
		p.put("max.poll.records", "7");
		p.put("max.partition.fetch.bytes", "400");
		if (!args[1].equals("-")) {
			p.put("security.protocol", "SSL");
			p.put("ssl.truststore.location", args[1]);
			p.put("ssl.truststore.password", "changeit");
			p.put("ssl.endpoint.identification.algorithm", "");
		}
		try (JMXConnector jmx = JMXConnectorFactory.connect(new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + args[2] + "/jmxrmi"))) {
			broker = jmx.getMBeanServerConnection();
			to = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
			from = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
			System.out.println(0);
			for (String line; (line = in.readLine()) != null;) {
				String[] words = line.split(" ");

				System.out.println(words[0].equals("counts") ? counts() : words[0].equals("store") ? store(words[1], Integer.parseInt(words[2])) :
						fetch(words[1], Integer.parseInt(words[2])));
			}
		}
		System.exit(0);
	}
}
