"""Classes of replicas: what is written of them, and what a name says."""

import pytest

from contracts.membership import ALIKE, ReplicaClass, Work, class_of, read_classes

SMALL, LARGE = ReplicaClass("small", 1.0, 1.0), ReplicaClass("large", 2.5, 2.2)
TEXT = "small 1 1,  large 2.5  2.2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("large", "'large' is no class of replicas; write for example 'small 1 1, large 2.5 2.2'"),
        ("Large 1 1", "is no class"),
        ("large 0 1", "speed and price must be above 0"),
        ("large nan 1", "is no class"),
        ("a 1 1, a 2 2", "'a' stands there twice"),
    ],
)
def test_what_is_no_class_is_refused_with_an_example(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_classes(text)
    with pytest.raises(ValueError, match="classes = "):
        Work(classes=text)


def test_a_name_says_the_class_and_one_that_says_nothing_has_the_first() -> None:
    classes = read_classes(TEXT)
    assert (classes, read_classes(" ")) == ((SMALL, LARGE), ALIKE)
    assert class_of("payment-3", classes) is classes[0]
    assert class_of("payment-small-0", classes) is classes[0]
    assert class_of("large-0", classes) is classes[0], "a prefix is no class"
    assert class_of("payment-large-1", ALIKE) is ALIKE[0]
