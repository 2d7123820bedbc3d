// SPDX-License-Identifier: Apache-2.0
// A producer for a Kafka broker inside TLS: one request for each record.
//   JavaKafka BOOTSTRAP KEYS; prints 0, then for each line "TOPIC N" how far the topic's end is, as the broker says.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class JavaKafka {
	private JavaKafka() {
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		Properties p = new Properties();

		p.put("bootstrap.servers", args[0]);
		p.put("security.protocol", "SSL");
		p.put("ssl.truststore.location", args[1]);
		p.put("ssl.truststore.password", "changeit");
		p.put("ssl.endpoint.identification.algorithm", "");
		try (KafkaProducer<String, String> to = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
				KafkaConsumer<String, String> from = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
			System.out.println(0);
			for (String line; (line = in.readLine()) != null;) {
				String[] words = line.split(" ");
				TopicPartition all = new TopicPartition(words[0], 0);

				for (int i = 0; i < Integer.parseInt(words[1]); i++)
					to.send(new ProducerRecord<>(words[0], "record " + i)).get();
				System.out.println(from.endOffsets(Collections.singleton(all)).get(all));
			}
		}
		System.exit(0);
	}
}
