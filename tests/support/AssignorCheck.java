package tailpack.kafka;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;

/** Checks of the assignor. Argument: the file that both sides read, with a rack id and then NUMBER and TOPIC OWNER … */
class AssignorCheck {
    static final Random DRAW = new Random(1);
    static final Uuid TOPIC = new Uuid(0, 5), OTHER = new Uuid(0, 6);

    record Member(String rack, String instance, Set<Uuid> topics, Map<Uuid, Set<Integer>> has) implements MemberSubscription, MemberAssignment {
        public Optional<String> rackId() { return Optional.ofNullable(rack); }
        public Optional<String> instanceId() { return Optional.ofNullable(instance); }
        public Set<Uuid> subscribedTopicIds() { return topics; }
        public Map<Uuid, Set<Integer>> partitions() { return has; }
    }

    static class Group extends TreeMap<String, Member> implements GroupSpec, SubscribedTopicDescriber {
        int partitions = 12;
        public Set<String> memberIds() { return keySet(); }
        public SubscriptionType subscriptionType() { return SubscriptionType.HOMOGENEOUS; }
        public boolean isPartitionAssigned(Uuid topic, int partition) { return false; }
        public boolean isPartitionAssignable(Uuid topic, int partition) { return true; }
        public MemberSubscription memberSubscription(String id) { return get(id); }
        public MemberAssignment memberAssignment(String id) { return get(id); }
        public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        public int numPartitions(Uuid topic) {
            if (partitions < 0) throw new IllegalStateException("as Kafka never does");
            return topic.equals(TOPIC) ? partitions : 5;
        }
        Group with(String id, Integer... has) { return with(id, null, has); }
        Group with(String id, String instance, Integer... has) {
            put(id, new Member(null, instance, Set.of(TOPIC), Map.of(TOPIC, Set.of(has))));
            return this;
        }
        Group planned(String id, String rack) { put(id, new Member(rack, null, Set.of(), Map.of())); return this; }
        Map<String, Set<Integer>> assign() {
            Map<String, Set<Integer>> found = new HashMap<>();
            new PlannedUniformAssignor().assign(this, this).members().forEach((id, given) -> {
                Set<Integer> partitions = given.partitions().getOrDefault(TOPIC, Set.of());
                if (!partitions.isEmpty()) found.put(id, partitions);
            });
            return found;
        }
    }

    static void same(Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError(found + ", expected " + expected);
    }

    public static void main(String[] args) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(args[0]));
        String rack = lines.get(0);
        Plan plan = Plan.read(rack);
        same(plan.number() + " " + plan.places().size(), lines.get(1) + " " + (lines.size() - 2));
        for (String line : lines.subList(2, lines.size())) {
            String[] owners = line.split(" ");
            Uuid topic = Uuid.fromString(owners[0]);
            for (int p = 1; p < owners.length; p++)
                same(plan.owner(topic, p - 1), owners[p].equals("-") ? -1L : Plan.key(owners[p]));
            same(plan.owner(topic, owners.length - 1), -1L);
        }
        // The plan of the file: partitions 0–3 of TOPIC to "one", 4 and 5 to "two", 6 to the absent "gone", 7 to nobody.
        Group group = new Group().with("one").with("id-of-two", "two").with("new").planned("p", rack);
        group.partitions = 9;
        same(group.assign(), Map.of("one", Set.of(0, 1, 2, 3), "id-of-two", Set.of(4, 5, 6, 7, 8)));
        group.with("one", 4, 6).with("new", 0, 7);
        same(group.assign(), Map.of("one", Set.of(0, 1, 2, 3, 6), "id-of-two", Set.of(4, 5, 8), "new", Set.of(7)));
        group.planned("older", rack.replace(":" + lines.get(1) + ":", ":1:")).planned("damaged", rack.substring(0, 30));
        same(group.assign().get("one"), Set.of(0, 1, 2, 3, 6));
        group = new Group().with("one", 0, 1, 2, 3, 4, 5, 6, 7).with("two", 8, 9, 10, 11).with("new");
        Map<String, Set<Integer>> before = Map.of("one", Set.of(0, 1, 2, 3, 4, 5, 6, 7), "two", Set.of(8, 9, 10, 11));
        same(group.planned("p", rack.replace("plan:1:", "plan:2:")).assign(), before);
        for (int k = 0; k < 3000; k++) {
            StringBuilder damaged = new StringBuilder(rack);
            for (int n = DRAW.nextInt(4); n >= 0; n--) damaged.setCharAt(14 + DRAW.nextInt(rack.length() - 14), (char) (32 + DRAW.nextInt(200)));
            if (k % 2 == 0) damaged.setLength(DRAW.nextInt(damaged.length()));
            if (Plan.read(damaged.toString()) == Plan.UNREADABLE && damaged.indexOf(Plan.MARK) == 0)
                same(group.planned("p", damaged.toString()).assign(), before);
        }
        group.partitions = -1;
        same(group.assign(), before);
        for (int k = 0; k < 500; k++) spread(1 + DRAW.nextInt(9), DRAW.nextInt(40));
    }

    /** Without a planner, every partition has one owner, counts are even, and a second assignment changes nothing. */
    static void spread(int members, int partitions) {
        Group group = new Group();
        group.partitions = partitions;
        Set<Uuid> topics = DRAW.nextBoolean() ? Set.of(TOPIC) : Set.of(TOPIC, OTHER);
        for (int m = 0; m < members; m++) group.put("m" + m, new Member(null, null, topics, new HashMap<>()));
        for (int p = 0; p < partitions; p++)
            if (DRAW.nextInt(4) > 0) group.get("m" + DRAW.nextInt(1 + members / 2)).has().computeIfAbsent(TOPIC, __ -> new HashSet<>()).add(p);
        Map<String, MemberAssignment> given = new PlannedUniformAssignor().assign(group, group).members();
        List<Integer> counts = given.values().stream().map(one -> one.partitions().values().stream().mapToInt(Set::size).sum()).sorted().toList();
        same(counts.stream().mapToInt(Integer::intValue).sum(), partitions + 5 * (topics.size() - 1));
        same(counts.get(members - 1) - counts.get(0) <= 1, true);
        given.forEach((id, one) -> group.put(id, new Member(null, null, topics, one.partitions())));
        new PlannedUniformAssignor().assign(group, group).members().forEach((id, one) -> same(one.partitions(), given.get(id).partitions()));
    }
}
