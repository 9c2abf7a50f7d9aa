"""When partitions are bundled into a request."""

from ottla.client.bundling import BundleRule

RULE = BundleRule(min_requests=10, max_wait_s=0.1)


def test_a_bundle_with_enough_partitions_is_sent_at_once() -> None:
    assert RULE.send_at(collected=10, attached=50, first_at=7.0) == 7.0


def test_a_bundle_with_too_few_waits_for_more_for_a_short_time() -> None:
    assert RULE.send_at(collected=9, attached=50, first_at=7.0) == 7.1


def test_it_does_not_wait_for_partitions_that_do_not_exist() -> None:
    assert RULE.send_at(collected=3, attached=3, first_at=7.0) == 7.0
    assert RULE.send_at(collected=2, attached=3, first_at=7.0) == 7.1


def test_a_single_partition_is_sent_at_once() -> None:
    assert RULE.send_at(collected=1, attached=1, first_at=7.0) == 7.0


def test_sending_changes_nothing_about_how_many_are_needed() -> None:
    assert [RULE.send_at(collected=1, attached=6, first_at=at) for at in (1.0, 2.0, 3.0)] == [1.1, 2.1, 3.1]
