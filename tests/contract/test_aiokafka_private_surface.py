"""Private names of aiokafka that services/consumer uses exist, with their parameters."""

import functools
import importlib
import inspect
import re
from typing import Any

import pytest

USED = """
consumer.group_coordinator.GroupCoordinator: _on_join_prepare(previous_assignment) _do_rejoin_group(subscription)
    _on_join_complete(generation,member_id,protocol,member_assignment_bytes) _do_commit_offsets(assignment,offsets)
    _send_req(request) reset_generation() _do_fetch_commit_offsets(partitions) _do_heartbeat() request_rejoin()
    ensure_coordinator_known() _lookup_assignor(name) coordinator_dead()
    _perform_assignment(response)
    start_commit_offsets_refresh_task(assignment) _stop_commit_offsets_refresh_task() generation member_id group_id
    coordinator_id _client _subscription _group_subscription _closing _coordination_task _rebalance_timeout_ms
    _retry_backoff_ms
    _cluster _metadata_snapshot _get_metadata_snapshot() _stop_heartbeat_task()
producer.sender.Sender: _do_txn_offset_commit(offsets,group_id) _find_coordinator(coordinator_type,coordinator_key)
    _txn_manager
producer.sender.TxnOffsetCommitHandler: create_request() handle_response(resp) _sender _offsets _group_id
client.AIOKafkaClient: _get_conn(node_id,group,no_hint) close() coordinator_lookup(coordinator_type,coordinator_key)
    send(node_id,request,group) set_topics(topics) _wait_on_metadata(topic) _maybe_wait_metadata() ready(node_id,group)
    force_metadata_update() get_random_node() cluster _conns _request_timeout_ms _get_conn_lock_value
record.memory_records._MemoryRecordsPy: next_batch(_min_slice,_magic_offset) _next_slice
coordinator.assignors.abstract.AbstractPartitionAssignor: metadata(topics) assign(cluster,members)
    on_assignment(assignment)
consumer.subscription_state.SubscriptionState: assign_from_subscribed(assignment) assigned_partitions()
    unsubscribe() _notify_assignment_waiters() subscription
consumer.subscription_state.Assignment: state_value(tp) tps _topic_partitions _tp_state
consumer.subscription_state.TopicPartitionState: __init__(assignment) await_reset(strategy) pause() seek(position)
    update_committed(offset_meta)
producer.transaction_manager.TransactionManager: is_fatal_error() wait_for_transaction_end() _pending_txn_offsets
    transactional_id producer_id producer_epoch
record.default_records._DefaultRecordBatchPy: _maybe_uncompress() _read_msg(decode_varint) _buffer
consumer.fetcher.Fetcher: _notify(future) _records _wait_consume_future
    _get_actions_per_node(assignment) fetched_records(partitions,timeout,max_records)
    _proc_fetch_request(assignment,node_id,request) _in_flight _pending_tasks
protocol.fetch.FetchRequest: _max_wait_ms
consumer.fetcher.FetchResult: _partition_records
consumer.fetcher.PartitionRecords: _consumer_record(tp,record) _records next_fetch_offset
conn.AIOKafkaConnection: close(reason,exc) _requests _last_action _request_timeout _writer
cluster.ClusterMetadata: brokers()
coordinator.protocol.ConsumerProtocolMemberMetadata: __init__(args,kwargs)
coordinator.protocol.ConsumerProtocolMemberAssignment: __init__(args,kwargs)
protocol.group.HeartbeatRequest: __init__(group,generation_id,member_id)
protocol.transaction.InitProducerIdRequest: __init__(transactional_id,transaction_timeout_ms)
protocol.group.LeaveGroupRequest: __init__(group,member_id)
protocol.metadata.MetadataRequest: __init__(topics,allow_auto_topic_creation)
protocol.admin.DescribeConfigsRequest: __init__(resources,include_synonyms)
protocol.admin.DescribeGroupsRequest: __init__(groups,include_authorized_operations)
consumer.consumer.AIOKafkaConsumer: _client _coordinator _subscription _fetcher
producer.producer.AIOKafkaProducer: client _sender _txn_manager _message_accumulator
producer.message_accumulator.MessageAccumulator: _batch_ttl _batch_size
consumer.subscription_state.Subscription: active assignment _reassignment_in_progress
"""
"""Class: methods that are overridden or called, with their parameters, and attributes that are read or set."""


def listed() -> list[tuple[str, str]]:
    """Return (dotted path, name) of each listed name."""
    owners = re.findall(r"^(\S+): ((?:.|\n    )+)", USED, re.MULTILINE)
    return [(f"aiokafka.{owner}", name) for owner, names in owners for name in names.split()]


SURFACE = listed()


def found(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


@functools.cache
def source_of(owner: type) -> str:
    """Return the source of the class and its bases in aiokafka."""
    return "".join(inspect.getsource(each) for each in owner.__mro__ if each.__module__.startswith("aiokafka"))


@pytest.mark.parametrize(("owner", "name"), SURFACE, ids=".".join)
def test_every_listed_name_exists_with_its_parameters(owner, name):
    known, (name, has_parameters, parameters) = found(owner), name.partition("(")
    if has_parameters:
        names = [one for one in inspect.signature(getattr(known, name)).parameters if one != "self"]
        assert ",".join(names) == parameters.rstrip(")")
    else:
        assert f"self.{name} = " in source_of(known) or isinstance(getattr(known, name, None), property)
