"""Everything that is used of aiokafka beyond its documentation here and in services/common/header_names.py.

Data only; a contract test reads it.

An aiokafka of another series is to be trusted only once that test passes: it fails by the names below. What the package
touches and this list does not name fails it too.
"""

from dataclasses import dataclass
from typing import Final

VERSION: Final = "0.14."
"""Series that was read; pyproject.toml pins it."""

CONSUMER: Final = "aiokafka.consumer.consumer.AIOKafkaConsumer"
COORDINATOR: Final = "aiokafka.consumer.group_coordinator.GroupCoordinator"
REBALANCE: Final = "aiokafka.consumer.group_coordinator.CoordinatorGroupRebalance"
STATE: Final = "aiokafka.consumer.subscription_state.SubscriptionState"
SUBSCRIPTION: Final = "aiokafka.consumer.subscription_state.Subscription"
ASSIGNMENT: Final = "aiokafka.consumer.subscription_state.Assignment"
PARTITION: Final = "aiokafka.consumer.subscription_state.TopicPartitionState"
FETCHER: Final = "aiokafka.consumer.fetcher.Fetcher"
CLUSTER: Final = "aiokafka.cluster.ClusterMetadata"
CLIENT: Final = "aiokafka.client.AIOKafkaClient"
CONNECTION: Final = "aiokafka.conn.AIOKafkaConnection"
PRODUCER: Final = "aiokafka.producer.producer.AIOKafkaProducer"
MEMORY: Final = "aiokafka.record.memory_records._MemoryRecordsPy"
BATCH: Final = "aiokafka.record.default_records._DefaultRecordBatchPy"
ACCUMULATOR: Final = "aiokafka.producer.message_accumulator.MessageAccumulator"
SENDER: Final = "aiokafka.producer.sender.Sender"
OFFSETS: Final = "aiokafka.producer.sender.TxnOffsetCommitHandler"
MANAGER: Final = "aiokafka.producer.transaction_manager.TransactionManager"
ASSIGNOR: Final = "aiokafka.coordinator.assignors.abstract.AbstractPartitionAssignor"
PROTOCOL: Final = "aiokafka.coordinator.protocol"
ADMIN: Final = "aiokafka.protocol.admin"
COMMIT: Final = "aiokafka.protocol.commit"
GROUP: Final = "aiokafka.protocol.group"
METADATA: Final = "aiokafka.protocol.metadata"
TRANSACTION: Final = "aiokafka.protocol.transaction"
API: Final = "aiokafka.protocol.api"
TYPES: Final = "aiokafka.protocol.types"


@dataclass(frozen=True, slots=True)
class Method:
    """Something that is overridden or called."""

    owner: str
    """Dotted path of the class."""
    name: str
    parameters: str
    """Their names, joined by spaces; `self` left out."""
    why: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that is read or written."""

    owner: str
    """Dotted path of the class."""
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Import:
    """A name of a module that the documentation does not promise."""

    module: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Behaviour that is relied upon."""

    name: str
    why: str


OVERRIDDEN: Final = (
    Method(COORDINATOR, "_on_join_prepare", "previous_assignment", "go on serving while the group is joined"),
    Method(COORDINATOR, "_do_rejoin_group", "subscription", "know when JoinGroup is under way"),
    Method(
        COORDINATOR,
        "_on_join_complete",
        "generation member_id protocol member_assignment_bytes",
        "hand over what moves instead of assigning anew",
    ),
    Method(COORDINATOR, "_do_commit_offsets", "assignment offsets", "no commit while joining"),
    Method(COORDINATOR, "_send_req", "request", "its answer may prove membership, and take as long as a round"),
    Method(COORDINATOR, "reset_generation", "", "what is lost is dropped in the same moment"),
    Method(COORDINATOR, "_do_fetch_commit_offsets", "partitions", "offsets that no open transaction may change"),
    Method(SENDER, "_do_txn_offset_commit", "offsets group_id", "offsets are sent in the name of a member"),
    Method(OFFSETS, "create_request", "", "… with its generation"),
    Method(OFFSETS, "handle_response", "resp", "… and may be refused"),
    Method(CLIENT, "_get_conn", "node_id group no_hint", "a silent broker holds up no way to another"),
    Method(CLIENT, "close", "", "attempts to connect end with it"),
    Method(MEMORY, "next_batch", "_min_slice _magic_offset", "a header of any name can be read"),
    Method(ASSIGNOR, "metadata", "topics", "a member introduces itself"),
    Method(ASSIGNOR, "assign", "cluster members", "the leader decides the round"),
    Method(ASSIGNOR, "on_assignment", "assignment", "a member learns the origin of its share"),
)

CALLED: Final = (
    Method(COORDINATOR, "_do_heartbeat", "", "ask without waiting for the next one"),
    Method(COORDINATOR, "request_rejoin", "", "a plan starts a round at once"),
    Method(COORDINATOR, "ensure_coordinator_known", "", "warm before the first join"),
    Method(COORDINATOR, "_lookup_assignor", "name", "hand the assignment to the assignor"),
    Method(COORDINATOR, "coordinator_dead", "", "another broker is the group's by now"),
    Method(COORDINATOR, "start_commit_offsets_refresh_task", "assignment", "the fetcher asks it where to begin"),
    Method(COORDINATOR, "_stop_commit_offsets_refresh_task", "", "one such task for one Assignment"),
    Method(STATE, "assign_from_subscribed", "assignment", "the first Assignment of a subscription"),
    Method(STATE, "assigned_partitions", "", "what is fetched now"),
    Method(STATE, "unsubscribe", "", "leave in the middle of a join"),
    Method(STATE, "_notify_assignment_waiters", "", "polls and the fetcher wait for it"),
    Method(ASSIGNMENT, "state_value", "tp", "position of one partition"),
    Method(PARTITION, "__init__", "assignment", "a state without a position voids a response under way"),
    Method(PARTITION, "await_reset", "strategy", "a position that the broker does not have is examined, not reset"),
    Method(PARTITION, "pause", "", "fetched no more meanwhile"),
    Method(PARTITION, "seek", "position", "begin where the last owner ended"),
    Method(
        PARTITION, "update_committed", "offset_meta", "release whoever waits for the offset of a partition that left"
    ),
    Method(SENDER, "_find_coordinator", "coordinator_type coordinator_key", "the group's broker, for its offsets"),
    Method(MANAGER, "is_fatal_error", "", "the producer is of no use any more"),
    Method(MANAGER, "wait_for_transaction_end", "", "its error is told elsewhere"),
    Method(CLIENT, "coordinator_lookup", "coordinator_type coordinator_key", "end what a dead replica left open"),
    Method(BATCH, "_maybe_uncompress", "", "what it reads are the records"),
    Method(FETCHER, "_notify", "future", "wake the fetcher"),
    Method(
        CLIENT, "send", "node_id request group", "leave for another, describe the group; a fetch can be called back"
    ),
    Method(CLIENT, "set_topics", "topics", "be told of one topic only"),
    Method(CLIENT, "_wait_on_metadata", "topic", "how many partitions it has"),
    Method(CONNECTION, "close", "reason exc", "do not wait on for a coordinator that is gone"),
    Method(CLIENT, "ready", "node_id group", "the connection of JoinGroup is there"),
    Method(CLUSTER, "brokers", "", "all are asked whether they are there"),
    Method(CLIENT, "force_metadata_update", "", "see partitions that a plan names"),
    Method(CLIENT, "get_random_node", "", "any broker knows a topic's id"),
    Method(f"{PROTOCOL}.ConsumerProtocolMemberMetadata", "__init__", "args kwargs", "carries our user data"),
    Method(f"{PROTOCOL}.ConsumerProtocolMemberAssignment", "__init__", "args kwargs", "carries our user data"),
    Method(f"{GROUP}.HeartbeatRequest", "__init__", "group generation_id member_id", "ask while JoinGroup waits"),
    Method(
        f"{TRANSACTION}.InitProducerIdRequest",
        "__init__",
        "transactional_id transaction_timeout_ms",
        "end what a dead replica left open",
    ),
    Method(f"{GROUP}.LeaveGroupRequest", "__init__", "group member_id", "evict; accepted from anybody"),
    Method(
        f"{METADATA}.MetadataRequest", "__init__", "topics allow_auto_topic_creation", "see whether a broker answers"
    ),
    Method(f"{ADMIN}.DescribeConfigsRequest", "__init__", "resources include_synonyms", "… asked for"),
    Method(
        f"{ADMIN}.DescribeGroupsRequest",
        "__init__",
        "groups include_authorized_operations",
        "see whether the group is empty",
    ),
)

ATTRIBUTES: Final = (
    Attribute(CONSUMER, "_client", "asked for the topic's id"),
    Attribute(CONSUMER, "_coordinator", "made in start(); its class is swapped before subscribe()"),
    Attribute(CONSUMER, "_subscription", "the one SubscriptionState"),
    Attribute(CONSUMER, "_fetcher", "the one Fetcher"),
    Attribute(PRODUCER, "client", "its class is swapped before start()"),
    Attribute(PRODUCER, "_sender", "its class is swapped before start()"),
    Attribute(PRODUCER, "_txn_manager", "the one TransactionManager"),
    Attribute(OFFSETS, "_sender", "the sender that made it"),
    Attribute(OFFSETS, "_offsets", "what is still to be sent"),
    Attribute(OFFSETS, "_group_id", "whose they are"),
    Attribute(SENDER, "_txn_manager", "the same TransactionManager"),
    Attribute(MANAGER, "_pending_txn_offsets", "a refusal is told to who waits for it"),
    Attribute(MANAGER, "transactional_id", "named with the offsets"),
    Attribute(MANAGER, "producer_id", "… and this"),
    Attribute(MANAGER, "producer_epoch", "… and this"),
    Attribute(COORDINATOR, "generation", "fences commits"),
    Attribute(COORDINATOR, "member_id", "empty when not a member"),
    Attribute(COORDINATOR, "group_id", "requests of our own"),
    Attribute(COORDINATOR, "coordinator_id", "node to send them to; None when unknown"),
    Attribute(COORDINATOR, "_client", "connection to send them on"),
    Attribute(COORDINATOR, "_subscription", "the same SubscriptionState"),
    Attribute(COORDINATOR, "_group_subscription", "None: no rejoin for metadata while joining"),
    Attribute(COORDINATOR, "_closing", "a close is no loss"),
    Attribute(COORDINATOR, "_coordination_task", "has it died, polling is hopeless"),
    Attribute(COORDINATOR, "_rebalance_timeout_ms", "how long a round may keep JoinGroup waiting"),
    Attribute(CLIENT, "cluster", "knows the brokers"),
    Attribute(CLIENT, "_conns", "the connection of JoinGroup, by node and group"),
    Attribute(CLIENT, "_request_timeout_ms", "how long an attempt to connect lasts"),
    Attribute(CLIENT, "_get_conn_lock_value", "one connection at a time; not here"),
    Attribute(CONNECTION, "_requests", "what was asked on it and not answered"),
    Attribute(CONNECTION, "_last_action", "when something was heard on it"),
    Attribute(CONNECTION, "_request_timeout", "longer for JoinGroup and SyncGroup"),
    Attribute(PRODUCER, "_message_accumulator", "holds what was not sent yet"),
    Attribute(ACCUMULATOR, "_batch_ttl", "how long an output waits for a leader; else the time of a request"),
    Attribute(ACCUMULATOR, "_batch_size", "a topic may take less"),
    Attribute(STATE, "subscription", "None when unsubscribed"),
    Attribute(SUBSCRIPTION, "active", "left meanwhile?"),
    Attribute(SUBSCRIPTION, "assignment", "None before the first round"),
    Attribute(SUBSCRIPTION, "_reassignment_in_progress", "True from subscribe() on; polls hand out nothing"),
    Attribute(ASSIGNMENT, "tps", "what is fetched now"),
    Attribute(ASSIGNMENT, "_topic_partitions", "changed in place"),
    Attribute(ASSIGNMENT, "_tp_state", "changed in place"),
    Attribute(FETCHER, "_records", "fetched and not yet polled, by partition"),
    Attribute("aiokafka.consumer.fetcher.FetchResult", "_partition_records", "find a record that cannot be parsed"),
    Attribute("aiokafka.consumer.fetcher.PartitionRecords", "_records_iterator", "ended by what it could not parse"),
    Attribute(MEMORY, "_next_slice", "the batch that comes next, as it was sent"),
    Attribute(BATCH, "_buffer", "replaced by one whose names can all be decoded"),
    Attribute(FETCHER, "_wait_consume_future", "done: the fetcher looks again at what to fetch"),
    Attribute(FETCHER, "_fetch_max_wait_ms", "read at every fetch; longer where nothing comes"),
)

IMPORTS: Final = (
    Import("aiokafka.client", "AIOKafkaClient", "base class"),
    Import("aiokafka.client", "CoordinationType", "a transaction's broker, and a group's"),
    Import("aiokafka.producer.sender", "Sender", "base class"),
    Import("aiokafka.producer.sender", "TxnOffsetCommitHandler", "base class"),
    Import(TRANSACTION, "InitProducerIdRequest", "end what a dead replica left open"),
    Import(API, "Request", "requests in versions that it does not know"),
    Import(API, "RequestStruct", "… as they are sent"),
    Import(API, "Response", "… and answered"),
    *(
        Import(TYPES, name, "fields of these")
        for name in ("Boolean", "CompactArray", "CompactString", "Int16", "Int32", "Int64", "Schema", "TaggedFields")
    ),
    Import("aiokafka.protocol.fetch", "FetchRequest", "it can be called back"),
    Import("aiokafka.protocol.offset", "OffsetRequest", "its answer may say that another broker leads"),
    Import("aiokafka.client", "ConnectionGroup", "a JoinGroup under way blocks its connection"),
    Import("aiokafka.conn", "CloseReason", "why a connection is cut off"),
    Import("aiokafka.consumer", "fetcher", "its MemoryRecords is replaced"),
    Import("aiokafka.record.default_records", "_DefaultRecordBatchPy", "a batch is read once more"),
    Import("aiokafka.record.memory_records", "_MemoryRecordsPy", "base class"),
    Import("aiokafka.consumer.group_coordinator", "GroupCoordinator", "base class"),
    Import("aiokafka.consumer.subscription_state", "TopicPartitionState", "a fresh one for each taking"),
    *(Import("aiokafka.protocol.api", name, "a topic's id") for name in ("Request", "RequestStruct", "Response")),
    *(
        Import("aiokafka.protocol.types", name, "a topic's id")
        for name in (
            "AbstractType",
            "CompactArray",
            "CompactString",
            "Int8",
            "Int16",
            "Int32",
            "Schema",
            "TaggedFields",
        )
    ),
    Import("aiokafka.coordinator.assignors.abstract", "AbstractPartitionAssignor", "base class"),
    Import(PROTOCOL, "ConsumerProtocol", "decode an assignment"),
    Import(PROTOCOL, "ConsumerProtocolMemberAssignment", "what the leader answers"),
    Import(PROTOCOL, "ConsumerProtocolMemberMetadata", "what a member says"),
    Import(ADMIN, "DescribeConfigsRequest", "how large a record a topic takes"),
    Import(ADMIN, "DescribeGroupsRequest", "see whether the group is empty"),
    Import(COMMIT, "OffsetCommitRequest", "its answer proves membership"),
    Import(GROUP, "HeartbeatRequest", "its answer proves membership; ask while JoinGroup waits"),
    Import(GROUP, "JoinGroupRequest", "its answer proves membership"),
    Import(GROUP, "LeaveGroupRequest", "leave for another"),
    Import(GROUP, "SyncGroupRequest", "its answer proves membership"),
    Import(METADATA, "MetadataRequest", "any broker answers it"),
)

GROUP_FACTS: Final = (
    Fact("the consumer makes its coordinator in start", "adopt comes after it"),
    Fact("the coordinator can change its class", "aiokafka offers no way to bring one's own"),
    Fact("a join learns its generation before the leader decides", "the leader tells which offsets are fresh"),
    Fact(
        "a rejoin asked for while joining is forgotten at SyncGroup", "epochs are compared when the round is complete"
    ),
    Fact("before the join is called once per sequence of attempts", "a loss inside it is handled in reset_generation"),
    Fact("heartbeats stop before JoinGroup and start after the round", "handing over has the session time for itself"),
    Fact("a heartbeat that meets a round asks to rejoin and counts as answered", "members hear of rounds, and stay"),
    Fact("a join without a subscription is given up", "leave() unsubscribes"),
    Fact("a commit carries the generation of the moment it is sent", "checked and sent without a pause between"),
    Fact("a commit does not look at the assignment", "None is passed"),
    Fact("a commit of an old generation throws the membership away", "so none is sent while joining"),
    Fact("a leave can take another connection than a join", "it is not kept waiting by it"),
    Fact("a group description begins with error, group and state", "see whether the group is empty"),
    Fact("user data survives the protocol", "introductions, origins and offsets travel in it"),
    Fact("an idempotent producer never gives up on a batch", "the replica does"),
    Fact("an abort is sent only for what the manager knows of", "a refusal must not make it forget what was written"),
)

FETCH_FACTS: Final = (
    Fact("polls hand out nothing before the first assignment", "records come when their queues are open"),
    Fact("a response for a partition without a position is thrown away", "a partition may leave and come back"),
    Fact("a response for an earlier position is thrown away", "a kept queue is fetched from where it ended"),
    Fact("fetched records of another position are thrown away", "nothing is handled twice after a seek"),
    Fact("fetched records of an assignment changed in place are handed out", "partitions that stay do not pause"),
    Fact("each fetch reads the wait anew", "it is long where nothing comes"),
    Fact("a fetch that is called back is asked again at once", "what was taken does not wait for it"),
    Fact("a partition without a position begins at the committed offset", "where no offset was handed on"),
    Fact("an offset that the broker does not have is told, and not left", "nothing jumps to the log's start"),
    Fact("a header may have any name", "nobody may stop a partition by one"),
    Fact("a record that cannot be parsed is found by where it ended the reading", "its partition is cut off alone"),
)
