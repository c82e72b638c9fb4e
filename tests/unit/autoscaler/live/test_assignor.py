"""The assignor on the brokers and the autoscaler read the same plans. Needs a JDK and Kafka's jars."""

import base64
import random
import subprocess
from pathlib import Path

import pytest
from kafka_helpers import DEADLINE_S

from autoscaler.live.foreign import assignor
from autoscaler.live.foreign.packed import LONGEST, join, key_of, pack, split, unpack
from contracts.validation import InvalidSettingsError
from tailpack.local.jars import java, kafka_jars

SUPPORT = Path(__file__).parents[3] / "support"
PACKED = SUPPORT / "packed_plan.txt"


def test_java_and_python_read_the_same_rack_id(tmp_path):
    rack, number, *lines = PACKED.read_text().splitlines()
    expected = {
        base64.urlsafe_b64decode(f"{topic}=="): [b"" if name == "-" else key_of(name) for name in names]
        for topic, *names in map(str.split, lines)
    }
    assert unpack(rack) == (int(number), expected)
    assert unpack(pack(int(number), expected)) == (int(number), expected)
    jar = assignor.build(tmp_path / assignor.JAR, kafka_jars(), java())
    path = f"{tmp_path}:{jar}:{kafka_jars()}/*"
    compiler = [str(Path(java()).with_name("javac")), "-cp", path, "-d", str(tmp_path)]
    subprocess.run([*compiler, str(SUPPORT / "AssignorCheck.java")], check=True, timeout=DEADLINE_S)
    check = [java(), "-Xmx96m", "-XX:TieredStopAtLevel=1", "-cp", path, "tailpack.kafka.AssignorCheck"]
    done = subprocess.run([*check, str(PACKED)], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr


def test_damaged_plans_are_unreadable():
    draw, rack = random.Random(1), PACKED.read_text().splitlines()[0]
    for _ in range(3000):
        damaged = list(rack)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = chr(draw.randint(32, 300))
        number, owners = unpack("".join(damaged[: draw.randint(0, 2 * len(damaged))]))
        assert number == -1 or owners or "".join(damaged) == rack


def test_a_plan_of_ten_thousand_partitions_and_a_thousand_members_fits_into_a_rack_id():
    draw, keys = random.Random(1), [key_of(f"member-{number}") for number in range(1000)]
    owners = {bytes(16): [draw.choice(keys) for _ in range(10_000)]}
    assert split(1, owners) == [pack(1, owners)]
    assert unpack(pack(1, owners)) == (1, owners)
    owners |= {bytes([1] * 16): [draw.choice(keys) for _ in range(9_000)] + [b""]}
    racks = split(2, owners)
    assert [len(rack) <= LONGEST for rack in racks] == [True, True], "it needs two"
    assert join([*racks, pack(1, {bytes(16): keys})]) == (2, owners)


def test_the_jar_is_built_reproducibly_and_a_jre_alone_is_named(tmp_path):
    first, second = (assignor.build(tmp_path / one / assignor.JAR, kafka_jars(), java()) for one in "ab")
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(
        InvalidSettingsError, match=r"jre/javac is missing: .* install openjdk-17-jdk-headless, or build .* to"
    ):
        assignor.build(tmp_path / assignor.JAR, tmp_path, str(tmp_path / "jre" / "java"))
