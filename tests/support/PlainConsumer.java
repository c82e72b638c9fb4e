import java.io.FileWriter;
import java.io.PrintWriter;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The Java twin of plain_consumer.py: an ordinary KafkaConsumer. Arguments: KEY=VALUE of the client. */
public class PlainConsumer {
    static final String NAME = System.getenv("TAILPACK_REPLICA");
    static PrintWriter log;

    static void say(String kind, Object numbers) {
        Instant now = Instant.now();
        log.println(now.getEpochSecond() * 1_000_000L + now.getNano() / 1000 + " " + kind + " " + numbers);
    }

    static String numbers(Collection<TopicPartition> partitions) {
        StringBuilder line = new StringBuilder();
        partitions.forEach(one -> line.append(one.partition()).append(' '));
        return line.toString();
    }

    public static void main(String[] args) throws Exception {
        String file = System.getenv("LOG_FOLDER") + "/" + NAME + "." + ProcessHandle.current().pid();
        log = new PrintWriter(new FileWriter(file, true), true);
        Map<String, Object> config = new HashMap<>();
        for (String one : args) config.put(one.split("=", 2)[0], one.split("=", 2)[1]);
        String topic = (String) config.remove("topic");
        config.put("client.id", NAME);
        config.remove("work.s");
        config.put("auto.commit.interval.ms", "1000");
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(5000); } catch (InterruptedException ignored) { }
        }));
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override public void onPartitionsRevoked(Collection<TopicPartition> which) {
                consumer.commitSync();
                say("R", numbers(which));
            }
            @Override public void onPartitionsAssigned(Collection<TopicPartition> which) { say("A", numbers(which)); }
            @Override public void onPartitionsLost(Collection<TopicPartition> which) { say("L", numbers(which)); }
        });
        try {
            while (true) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(20)))
                    say("E", one.partition() + " " + one.offset());
            }
        } catch (WakeupException stopped) {
            consumer.close();
        }
    }
}
