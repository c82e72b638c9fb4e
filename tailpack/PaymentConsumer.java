import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Payment stage as an ordinary KafkaConsumer, which knows nothing of plans. It accepts every payment.
 *
 * Its settings are the environment variables of services.payment. Its reports are only for the benchmark, and for
 * autoscalers that do not lead its group.
 */
public class PaymentConsumer {
    static final ObjectMapper JSON = new ObjectMapper();
    static final long CATCH_UP_NS = 100_000_000L; // a busy server makes up for at most this much
    static final long REPORT_NS = 250_000_000L;

    final TreeSet<Integer> partitions = new TreeSet<>();
    final KafkaConsumer<byte[], byte[]> consumer;
    final KafkaProducer<byte[], byte[]> producer;
    final String replica = setting("REPLICA", "payment-0");
    final long serviceNs = ns("SERVICE_TIME_S", "0.005"), commitNs = ns("COMMIT_INTERVAL_S", "0.1");
    final String incarnation = String.format("%016d-%s", nowUs(), UUID.randomUUID().toString().substring(0, 8));
    long deadlineNs = Long.MIN_VALUE / 2;
    long busyNs, processed, rebalances, reportedNs, committedNs;
    String state = "warm", memberId = "";

    static String setting(String name, String otherwise) {
        String value = System.getenv("TAILPACK_" + name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    static long ns(String name, String otherwise) {
        return Math.round(Double.parseDouble(setting(name, otherwise)) * 1e9);
    }

    static String named(String topic) {
        String namespace = setting("NAMESPACE", "");
        return namespace.isEmpty() ? topic : namespace + "." + topic;
    }

    PaymentConsumer() {
        String runtime = setting("RUNTIME", ""), led = runtime.equals("led-cooperative") ? "CooperativeSticky" : "Range";
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", setting("BOOTSTRAP_SERVERS", "127.0.0.1:9092"));
        config.put("group.id", named("payment"));
        config.put("client.id", replica);
        if (runtime.equals("kip848")) { // the other settings are those of the group
            config.put("group.protocol", "consumer");
        } else {
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + led + "Assignor");
            config.put("heartbeat.interval.ms", String.valueOf(ns("HEARTBEAT_S", "3") / 1_000_000));
            config.put("session.timeout.ms", String.valueOf(ns("SESSION_S", "45") / 1_000_000));
        }
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("max.poll.records", "1"); // a rebalance waits for one event at most
        config.put("retry.backoff.ms", "20");
        config.put("fetch.max.wait.ms", "10"); // a partition that arrives waits for the pending fetch
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        consumer = new KafkaConsumer<>(config);
        producer = new KafkaProducer<>(Map.of(
            "bootstrap.servers", config.get("bootstrap.servers"), "linger.ms", "0", "acks", "all",
            "key.serializer", ByteArraySerializer.class.getName(),
            "value.serializer", ByteArraySerializer.class.getName()));
    }

    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000L + now.getNano() / 1000;
    }

    void serve(ConsumerRecord<byte[], byte[]> record, boolean idle) {
        long receivedUs = nowUs(), now = System.nanoTime();
        long start = Math.max(deadlineNs, idle ? now : now - CATCH_UP_NS);
        busyNs += start + serviceNs - (idle ? start : deadlineNs);
        deadlineNs = start + serviceNs;
        for (long left; (left = deadlineNs - System.nanoTime()) > 0; ) LockSupport.parkNanos(left);
        processed++;
        try {
            ObjectNode payment = settle(record, receivedUs);
            send("payments.settled", payment.get("order_id").textValue(), payment);
        } catch (Exception refused) { // no record may stop the replica
            ObjectNode letter = JSON.createObjectNode().put("letter_id", record.partition() + "-" + record.offset());
            letter.put("stage", "payment").put("topic", record.topic()).put("partition", record.partition());
            letter.put("offset", record.offset()).putNull("order_id").put("at_us", nowUs());
            letter.putArray("reasons").add(refused.toString());
            letter.put("payload", new String(record.value(), StandardCharsets.UTF_8));
            send("dead.letters", letter.get("letter_id").textValue(), letter);
        }
    }

    ObjectNode settle(ConsumerRecord<byte[], byte[]> record, long receivedUs) throws IOException {
        ObjectNode payment = (ObjectNode) JSON.readTree(record.value());
        ObjectNode timeline = (ObjectNode) payment.get("timeline");
        timeline.put("received_us", receivedUs).put("done_us", nowUs()).put("replica", replica);
        timeline.put("partition", record.partition()).put("offset", record.offset());
        timeline.put("epoch", 0).put("generation", consumer.groupMetadata().generationId());
        byte[] order = payment.get("order_id").textValue().getBytes(StandardCharsets.UTF_8);
        payment.remove("card_token");
        payment.put("payment_id", UUID.nameUUIDFromBytes(order).toString()).put("accepted", true);
        return payment.putNull("decline_reason").put("risk_score", 0.0);
    }

    void send(String topic, String key, ObjectNode value) {
        byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
        producer.send(new ProducerRecord<>(named(topic), key.getBytes(StandardCharsets.UTF_8), text));
    }

    /** Commit what was served, once the broker has all results. */
    void commit(boolean andWait) {
        producer.flush();
        committedNs = System.nanoTime();
        try {
            if (andWait) consumer.commitSync();
            else consumer.commitAsync();
        } catch (RebalanceInProgressException | CommitFailedException later) { // the next one commits, perhaps another's
        }
    }

    void report() {
        reportedNs = System.nanoTime();
        ObjectNode report = JSON.createObjectNode().put("replica", replica).put("incarnation", incarnation);
        if (!state.equals("stopping")) memberId = consumer.groupMetadata().memberId();
        report.put("pid", ProcessHandle.current().pid()).put("member_id", memberId);
        report.put("generation", -1).put("epoch", 0).put("assigned_epoch", 0).put("state", state);
        partitions.forEach(report.putArray("partitions")::add);
        report.putObject("positions");
        report.put("processed", processed).put("busy_us", busyNs / 1000).put("rebalances", rebalances);
        send("autoscaler.progress", replica, report.put("at_us", nowUs()).put("v", 2));
    }

    void changed(Collection<TopicPartition> which, boolean added) {
        rebalances++;
        for (TopicPartition one : which) {
            if (added) partitions.add(one.partition());
            else partitions.remove(one.partition());
        }
        if (added && !which.isEmpty()) state = "member";
        report();
    }

    /** Do once what an event needs, before the replica joins: its first event waits for no class and no connection. */
    void warm() throws IOException {
        TopicPartition first = new TopicPartition(named("payments.requested"), 0);
        byte[] sample = "{\"order_id\": \"\", \"timeline\": {}}".getBytes(StandardCharsets.UTF_8);
        settle(new ConsumerRecord<>(first.topic(), first.partition(), 0, null, sample), nowUs());
        consumer.assign(List.of(first));
        consumer.seekToBeginning(List.of(first));
        consumer.poll(Duration.ofMillis(100));
        consumer.unsubscribe();
    }

    void run() {
        consumer.subscribe(List.of(named("payments.requested")), new ConsumerRebalanceListener() {
            @Override public void onPartitionsAssigned(Collection<TopicPartition> which) { changed(which, true); }
            @Override public void onPartitionsLost(Collection<TopicPartition> which) { changed(which, false); }
            @Override public void onPartitionsRevoked(Collection<TopicPartition> which) {
                commit(true);
                changed(which, false);
            }
        });
        report();
        boolean idle = true;
        try {
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(idle ? 10 : 0));
                for (ConsumerRecord<byte[], byte[]> one : records) {
                    serve(one, idle);
                    idle = false;
                }
                idle = idle || records.isEmpty();
                long now = System.nanoTime();
                if (now - committedNs >= commitNs) commit(false);
                if (now - reportedNs >= REPORT_NS) report();
            }
        } catch (WakeupException stopped) {
            consumer.close(); // calls onPartitionsRevoked, then leaves the group
            state = "stopping";
            report();
            producer.close();
        }
    }

    public static void main(String[] args) throws IOException {
        if (!setting("CLIENT_PROPERTIES", "").isEmpty()) {
            System.err.println("client_properties are not supported by this example; set TAILPACK_CLIENT=librdkafka");
            System.exit(2);
        }
        PaymentConsumer payment = new PaymentConsumer();
        payment.warm();
        if (args.length > 0) { // only load the classes
            payment.consumer.subscribe(List.of(named("payments.requested")));
            payment.consumer.poll(Duration.ofMillis(100));
            payment.producer.close(Duration.ZERO);
            payment.consumer.close(CloseOptions.timeout(Duration.ZERO));
            return;
        }
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            payment.consumer.wakeup();
            try { main.join(10_000); } catch (InterruptedException ignored) { }
        }));
        payment.run();
        Runtime.getRuntime().halt(0); // a signal would else be its exit status
    }
}
