package tailpack.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Gives each partition to the owner that a plan names. A member that consumes nothing, the planner, carries the plan in
 * its rack id, or several members carry parts of it. So this class has no state, thread or input but its arguments.
 *
 * <p>A partition without a planned owner that is here stays where it is. If nobody has it, the planned member with the
 * fewest gets it. Other consumers get nothing. Without a planner, partitions are spread evenly, with few moves.
 *
 * <p>Its name is that of Kafka's default, because some clients (franz-go) ask for "uniform" and would outvote the planner.
 */
public final class PlannedUniformAssignor implements ConsumerGroupPartitionAssignor {
    private static final int MOST_ROUNDS = 5;

    @Override
    public String name() {
        return "uniform";
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            return new Spread(group, topics).carryOut();
        } catch (RuntimeException unexpected) { // an exception would keep every later member out of the group
            Map<String, MemberAssignment> same = new HashMap<>();
            for (String member : group.memberIds()) same.put(member, group.memberAssignment(member));
            return new GroupAssignment(same);
        }
    }

    /** One computation. Consumers are numbered in the order of their ids; -1 is nobody. */
    private static final class Spread {
        private final GroupSpec group;
        private final List<String> ids = new ArrayList<>();
        private final List<MemberSubscription> consumers = new ArrayList<>();
        private final Map<Uuid, int[]> owners = new TreeMap<>();
        private final Map<Uuid, int[]> takers = new HashMap<>();
        private final int[] load;
        private final List<Plan> plans = new ArrayList<>(); // the parts of the newest one

        Spread(GroupSpec group, SubscribedTopicDescriber topics) {
            this.group = group;
            Set<Uuid> subscribed = new HashSet<>();
            for (String member : new TreeSet<>(group.memberIds())) {
                MemberSubscription subscription = group.memberSubscription(member);
                String rack = subscription.rackId().orElse("");
                if (rack.startsWith(Plan.MARK)) {
                    Plan carried = Plan.read(rack);
                    if (!plans.isEmpty() && carried.number() > plans.get(0).number()) plans.clear();
                    if (plans.isEmpty() || carried.number() == plans.get(0).number()) plans.add(carried);
                } else {
                    ids.add(member);
                    consumers.add(subscription);
                    subscribed.addAll(subscription.subscribedTopicIds());
                }
            }
            load = new int[ids.size()];
            for (Uuid topic : subscribed) owners.put(topic, holders(topic, Math.max(0, topics.numPartitions(topic))));
        }

        GroupAssignment carryOut() {
            boolean[] isPlanned = new boolean[load.length];
            for (Plan plan : plans) follow(plan, isPlanned);
            owners.forEach((topic, of) -> {
                int[] all = all(topic);
                int[] planned = Arrays.stream(all).filter(one -> isPlanned[one]).toArray();
                takers.put(topic, planned.length > 0 ? planned : all);
                for (int owner : of) if (owner >= 0) load[owner]++;
            });
            owners.forEach((topic, of) -> {
                for (int p = 0; p < of.length; p++) if (of[p] < 0) load[of[p] = least(topic)]++;
            });
            for (int round = 0; plans.isEmpty() && round < MOST_ROUNDS && evenOut(); round++);
            return answer();
        }

        private int[] holders(Uuid topic, int partitions) {
            int[] of = new int[partitions];
            Arrays.fill(of, -1);
            for (int one : all(topic))
                for (int p : group.memberAssignment(ids.get(one)).partitions().getOrDefault(topic, Set.of()))
                    if (p < partitions) of[p] = one;
            return of;
        }

        private void follow(Plan plan, boolean[] isPlanned) {
            Map<Long, Integer> byKey = new HashMap<>();
            for (int i = 0; i < load.length; i++)
                byKey.put(Plan.key(consumers.get(i).instanceId().orElse(ids.get(i))), i);
            for (long key : plan.owners()) if (byKey.containsKey(key)) isPlanned[byKey.get(key)] = true;
            owners.forEach((topic, of) -> {
                for (int p = 0; p < of.length; p++) {
                    Integer owner = byKey.get(plan.owner(topic, p));
                    if (owner != null && reads(owner, topic)) of[p] = owner;
                }
            });
        }

        /** Move partitions from members with more to the one with the fewest; return whether any moved. */
        private boolean evenOut() {
            boolean hasMoved = false;
            for (Map.Entry<Uuid, int[]> entry : owners.entrySet()) {
                int[] of = entry.getValue();
                for (int p = 0; p < of.length; p++) {
                    int least = least(entry.getKey());
                    if (load[of[p]] - load[least] <= 1) continue;
                    load[of[p]]--;
                    load[of[p] = least]++;
                    hasMoved = true;
                }
            }
            return hasMoved;
        }

        private GroupAssignment answer() {
            Map<String, Map<Uuid, Set<Integer>>> given = new HashMap<>();
            for (String member : group.memberIds()) given.put(member, new HashMap<>());
            owners.forEach((topic, of) -> {
                for (int p = 0; p < of.length; p++)
                    given.get(ids.get(of[p])).computeIfAbsent(topic, __ -> new HashSet<>()).add(p);
            });
            Map<String, MemberAssignment> answer = new HashMap<>();
            given.forEach((member, partitions) -> answer.put(member, () -> partitions));
            return new GroupAssignment(answer);
        }

        private int least(Uuid topic) {
            int least = -1;
            for (int one : takers.get(topic)) if (least < 0 || load[one] < load[least]) least = one;
            return least;
        }

        private int[] all(Uuid topic) {
            return java.util.stream.IntStream.range(0, ids.size()).filter(one -> reads(one, topic)).toArray();
        }

        private boolean reads(int consumer, Uuid topic) {
            return consumers.get(consumer).subscribedTopicIds().contains(topic);
        }
    }
}
