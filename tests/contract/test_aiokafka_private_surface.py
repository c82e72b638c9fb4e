"""Exactly the listed private names of aiokafka are used, and all of them exist with their parameters."""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler

import services.consumer
from contracts import unpacking

VERSION = "0.14."
"""Series of aiokafka that the lists were made for; pyproject.toml pins it."""
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
EXTENDED = (AIOKafkaClient, Fetcher, GroupCoordinator, PartitionRecords, Sender, TxnOffsetCommitHandler)
FILES = [*sorted(Path(services.consumer.__file__).parent.glob("*.py")), Path(unpacking.__file__)]


def listed() -> list[tuple[str, str]]:
    """Return (dotted path, name) of each listed name."""
    owners = re.findall(r"^(\S+): ((?:.|\n    )+)", USED, re.MULTILINE)
    return [(f"aiokafka.{owner}", name) for owner, names in owners for name in names.split()]


SURFACE = listed()
LISTED = {name.partition("(")[0] for _, name in SURFACE}


def found(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


@functools.cache
def source_of(owner: type) -> str:
    """Return the source of the class and its bases in aiokafka."""
    return "".join(inspect.getsource(each) for each in owner.__mro__ if each.__module__.startswith("aiokafka"))


def test_the_installed_series_is_the_one_that_was_read():
    assert aiokafka.__version__.startswith(VERSION)


@pytest.mark.parametrize(("owner", "name"), SURFACE, ids=".".join)
def test_every_listed_name_exists_with_its_parameters(owner, name):
    known, (name, has_parameters, parameters) = found(owner), name.partition("(")
    if has_parameters:
        names = [one for one in inspect.signature(getattr(known, name)).parameters if one != "self"]
        assert ",".join(names) == parameters.rstrip(")")
    else:
        assert f"self.{name} = " in source_of(known) or isinstance(getattr(known, name, None), property)


# The lists match the package's own source.


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in FILES:
        yield file.name, ast.parse(file.read_text())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def foreign_attributes(tree: ast.Module) -> set[str]:
    """Return private attributes that the module uses or overrides, except those of its own classes."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    declared = set().union(*map(declared_in, classes))
    overridden = {name for each in classes for name in declared_in(each) if any(name in of for of in extended(each))}
    plain = {node for each in classes if not extended(each) for node in ast.walk(each)}
    used = set(overridden)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            on_self = isinstance(node.value, ast.Name) and node.value.id == "self" and node in plain
            if node.attr not in declared - overridden and not (on_self and node.attr in our_own()):
                used.add(node.attr)
    return used


@functools.cache
def our_own() -> set[str]:
    """Return private attributes of classes that do not extend aiokafka, which their subclasses may use."""
    classes = [node for _, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return set().union(*(assigned_in(each) | declared_in(each) for each in classes if not extended(each)))


def extended(node: ast.ClassDef) -> list[set[str]]:
    """Return the private names of each class of aiokafka that this one extends."""
    bases = [
        each for each in EXTENDED for base in node.bases if isinstance(base, ast.Name) and base.id == each.__name__
    ]
    return [{name for name in re.findall(r"\b_\w+", source_of(each)) if is_private(name)} for each in bases]


def declared_in(node: ast.ClassDef) -> set[str]:
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return {name for name in names | {each.id for each in fields if isinstance(each, ast.Name)} if is_private(name)}


def assigned_in(node: ast.ClassDef) -> set[str]:
    stores = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in stores if isinstance(each.value, ast.Name) and each.value.id == "self"}


def test_every_private_attribute_in_use_is_listed():
    unlisted = {(name, each) for name, tree in trees() for each in foreign_attributes(tree) - LISTED}
    assert unlisted == set()


def test_every_listed_private_attribute_is_used():
    used = set().union(*(foreign_attributes(tree) for _, tree in trees()))
    assert {name for name in LISTED if is_private(name)} - used == set()


def test_an_unlisted_use_is_detected():
    ours = """
class Mine(GroupCoordinator):
    _own: int
    def _send_req(self):
        self._own = fetcher._in_flight
        self._members = 1
class Other:
    def __init__(self, consumer):
        self._coordinator = consumer._coordinator
"""
    assert foreign_attributes(ast.parse(ours)) == {"_send_req", "_in_flight", "_members", "_coordinator"}
