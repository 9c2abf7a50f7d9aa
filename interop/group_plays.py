"""Scripted scenarios of group members, run against a real Kafka broker and Ottla's rules.

A play asks and notes what is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.group_stage import INITIAL_DELAY_MS, MIN_SESSION_MS, OTHER_TOPIC, READS_OTHER, TOPIC, Play

if TYPE_CHECKING:
    from collections.abc import Callable


def dynamic_members(play: Play) -> None:
    play.two_stable()
    play.describe()
    play.heartbeat("ann")
    play.join("bob")  # no news
    play.sync("bob")
    play.join("bob", metadata=READS_OTHER, waits=True)
    play.heartbeat("ann")
    play.describe()
    play.join("ann", waits=True)
    play.hear("ann", "bob")
    play.describe()
    play.heartbeat("bob")
    play.sync("bob", waits=True)
    play.join("cyd", waits=True)
    play.hear("bob")
    play.sync("ann")
    play.leave("bob", (play.ids["bob"], None))
    play.join("ann", waits=True)
    play.hear("ann", "cyd")
    play.sync("ann", assignments={"ann": b"only"})
    play.sync("cyd")
    play.leave("ann", (play.ids["ann"], None), ("nobody", None), version=4)
    play.leave("cyd", (play.ids["cyd"], None), version=1)
    play.leave("cyd", (play.ids["cyd"], None), version=1)
    play.describe()


def ids_are_required(play: Play) -> None:
    play.join("ann", 4)
    play.describe()
    play.heartbeat("ann")
    play.sync("ann")
    play.join("ann", 4)
    play.join("ann", 4)  # as if the answer had been lost
    play.sync("ann", assignments={"ann": b"a"})
    play.join("bob", 9)
    play.join("eve", 9, member_id="eve-1")
    play.heartbeat("bob")
    play.join("bob", 9, waits=True)
    play.join("ann", 9, waits=True)
    play.hear("ann", "bob")
    play.join("bob", 9)  # still the same generation
    play.join("ann", 9)


def static_members(play: Play) -> None:
    play.two_static()
    old_bob = play.ids["bob"]
    play.join("bob", 5, group_instance_id="B", member_id="")
    play.describe()
    for instance in ("B", "C", None):
        play.heartbeat("bob", member_id=old_bob, group_instance_id=instance)
        play.sync("bob", member_id=old_bob, group_instance_id=instance)
        play.commit("bob", 9, member_id=old_bob, group_instance_id=instance)
    play.join("bob", 5, group_instance_id="B", member_id=old_bob)
    play.leave("bob", (old_bob, "B"), (old_bob, None), ("", "C"), ("", None))
    play.sync("bob", group_instance_id="B")
    play.heartbeat("ann", group_instance_id="A")
    play.join("ann", 9, group_instance_id="A", member_id="")
    play.sync("ann", group_instance_id="A")
    play.join("ann", 8, group_instance_id="A", member_id="")
    play.sync("ann", group_instance_id="A")
    play.join("ann", 8, group_instance_id="A", waits=True)
    play.join("bob", 8, group_instance_id="B", waits=True)
    play.hear("ann", "bob")
    play.leave("admin", ("", "B"))
    play.heartbeat("ann", group_instance_id="A")


def static_member_restarts_while_others_wait(play: Play) -> None:
    play.two_static()
    play.join("ann", 5, group_instance_id="A", waits=True)
    play.join("ann again", 5, group_instance_id="A", waits=True)
    play.hear("ann")
    play.join("bob", 5, group_instance_id="B", waits=True)
    play.hear("ann again", "bob")
    play.sync("bob", group_instance_id="B", waits=True)
    play.join("bob again", 5, group_instance_id="B", waits=True)
    play.hear("bob")
    play.join("ann again", 5, group_instance_id="A", waits=True)
    play.hear("ann again", "bob again")


def static_member_with_another_protocol(play: Play) -> None:
    play.join("ann", 5, group_instance_id="A", protocols=("range", "sticky"))
    play.sync("ann", assignments={"ann": b"a"})
    play.join("ann", 5, group_instance_id="A", member_id="", protocols=("other",))
    play.join("ann", 5, group_instance_id="A", member_id="", protocols=("sticky", "range"))
    play.sync("ann", protocol_name="range")
    play.sync("ann", protocol_name="sticky")


def protocols_are_voted_on(play: Play) -> None:
    play.join("ann", protocols=())
    play.join("ann", protocol_type="")
    play.join("ann", protocols=("only-ann", "range", "sticky"))
    play.join("bob", protocol_type="connect")
    play.join("bob", protocols=("only-bob",))
    play.join("bob", protocols=("sticky", "range"), waits=True)
    play.join("cyd", protocols=("sticky", "only-cyd", "range"), waits=True)
    play.join("ann", protocols=("only-ann", "range", "sticky"), waits=True)
    play.hear("ann", "bob", "cyd")
    play.sync("bob", protocol_name="range")
    play.sync("bob", protocol_type="connect", protocol_name="sticky")
    play.sync("bob", 3, waits=True)
    play.sync("ann", protocol_name="sticky", assignments={"bob": b"b"})
    play.hear("bob")
    play.join("bob", protocols=("only-cyd",))


def wrong_requests(play: Play) -> None:
    play.join("ann", session_timeout_ms=MIN_SESSION_MS - 1)
    play.join("ann", session_timeout_ms=1_800_001)
    play.join("ann", member_id="ann-1")
    play.join("ann", group_id="")
    play.sync("ann", group_id="")
    play.heartbeat("ann", group_id="")
    play.leave("ann", ("ann-1", None), group_id="")
    play.leave("ann", ("ann-1", None), version=2)
    play.leave("ann", ("ann-1", None))
    play.sync("ann")
    play.heartbeat("ann")
    play.describe(5)
    play.describe(6)
    play.delete()
    play.delete_offsets(TOPIC)
    play.two_stable()
    for generation in (play.generation - 1, play.generation + 1, -1):
        play.heartbeat("bob", generation_id=generation)
        play.sync("bob", generation_id=generation)
        play.commit("bob", generation_id_or_member_epoch=generation)
    play.delete()


def a_full_group(play: Play) -> None:
    play.two_stable()
    play.join("cyd", waits=True)
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.hear("ann", "bob", "cyd")
    play.join("dan")
    play.join("dan", 9)
    play.join("ann", metadata=READS_OTHER, waits=True)
    play.join("dan", waits=True)
    play.join("cyd", waits=True)
    play.join("bob", member_id=play.ids["bob"])


def offsets(play: Play) -> None:
    play.commit("ann", 8, generation_id_or_member_epoch=1)
    play.commit("ann", 9, generation_id_or_member_epoch=1)
    play.commit("admin", 9, generation_id_or_member_epoch=-1)
    play.describe()
    play.commit("admin", 4, generation_id_or_member_epoch=-1, retention_time_ms=1000)
    play.commit("admin", metadata="x" * 4096)
    play.commit("admin", metadata="ö" * 4096)
    play.commit("admin", metadata="x" * 4097)
    play.join("ann")
    play.commit("ann")
    play.sync("ann")
    play.commit("ann", topics=(TOPIC, OTHER_TOPIC))
    play.commit("admin", generation_id_or_member_epoch=-1)
    play.commit("ann", generation_id_or_member_epoch=-1)
    play.commit("admin", generation_id_or_member_epoch=-1, member_id="whoever")
    play.commit("admin", generation_id_or_member_epoch=-1, group_instance_id="A")
    play.join("bob", waits=True)
    play.commit("ann")
    play.delete_offsets(TOPIC, OTHER_TOPIC)
    play.leave("ann", (play.ids["ann"], None))
    play.hear("bob")
    play.delete()
    play.leave("bob", (play.ids["bob"], None))
    play.commit("bob")
    play.commit("admin", generation_id_or_member_epoch=-1)
    play.delete_offsets(TOPIC, OTHER_TOPIC)
    play.describe()
    play.delete()
    play.delete()


def other_kinds_of_members(play: Play) -> None:
    play.join("con", protocol_type="connect", protocols=("default",), metadata=b"opaque")
    play.sync("con", protocol_type="connect", protocol_name="default", assignments={"con": b"\x00\xff"})
    play.describe()
    play.commit("con")
    play.delete_offsets(TOPIC)
    play.leave("con", (play.ids["con"], None))
    play.delete_offsets(TOPIC)
    play.join("ann")


def silence(play: Play) -> None:
    play.join("ann", session_timeout_ms=30_000)
    play.join("bob", session_timeout_ms=500, waits=True)
    play.join("ann", waits=True)
    play.hear("ann", "bob")
    play.sync("bob", waits=True)
    play.wait(1000)  # a waiting member need not send heartbeats
    play.sync("ann", assignments={"bob": b"b"})
    play.hear("bob")
    play.heartbeat("bob")
    play.wait(1500)
    play.heartbeat("bob")
    play.heartbeat("ann")
    play.describe()


def everybody_falls_silent(play: Play) -> None:
    play.join("ann", session_timeout_ms=300)
    play.join("bob", 4, session_timeout_ms=300)
    play.wait(1500)
    play.describe()
    play.join("bob", 4, session_timeout_ms=300)


def somebody_does_not_come_back(play: Play) -> None:
    play.join("ann", rebalance_timeout_ms=500)
    play.sync("ann")
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.wait(1500)
    play.hear("bob")
    play.heartbeat("ann")
    play.heartbeat("bob")


def somebody_never_syncs(play: Play) -> None:
    play.join("ann", rebalance_timeout_ms=500)
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.join("ann", rebalance_timeout_ms=500, waits=True)
    play.hear("ann", "bob")
    play.sync("bob", waits=True)
    play.wait(1500)
    play.hear("bob")
    play.heartbeat("ann")
    play.heartbeat("bob")
    play.join("bob", rebalance_timeout_ms=500)


def static_member_stays_away(play: Play) -> None:
    play.join("ann", 5, group_instance_id="A", rebalance_timeout_ms=500)
    play.sync("ann")
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.wait(1500)
    play.hear("bob")
    play.describe()


def leaving_while_others_join(play: Play) -> None:
    play.two_stable()
    play.join("cyd", 4)
    play.join("cyd", 4, waits=True)
    play.leave("admin", (play.ids["cyd"], None))
    play.hear("cyd")
    play.join("cyd", 4)  # its id is no longer good
    play.ids["cyd"] = ""
    play.join("cyd", 4)
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.leave("cyd", (play.ids["cyd"], None))  # which it had not used yet
    play.hear("ann", "bob")
    play.sync("ann", assignments={"ann": b"a", "bob": b"b"})
    play.join("ann", waits=True)
    play.leave("bob", (play.ids["bob"], None))
    play.hear("ann")
    play.describe()


def hanging_up(play: Play) -> None:
    play.two_stable()
    play.join("bob", metadata=READS_OTHER, waits=True)
    play.stage.hang_up("bob")
    play.join("ann")
    play.join("bob", metadata=READS_OTHER)
    play.sync("bob", waits=True)
    play.stage.hang_up("bob")
    play.sync("ann", assignments={"bob": b"for bob"})
    play.sync("bob")
    play.heartbeat("bob")


def the_first_wait_for_company(play: Play) -> None:
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.describe()
    play.wait(3 * INITIAL_DELAY_MS)
    play.hear("ann", "bob")
    play.sync("ann", assignments={"ann": b"a"})
    play.sync("bob")
    play.leave("ann", (play.ids["ann"], None), (play.ids["bob"], None))
    play.describe()
    play.join("cyd", waits=True)
    play.wait(2 * INITIAL_DELAY_MS)
    play.hear("cyd")


def the_first_wait_is_for_nobody(play: Play) -> None:
    play.join("ann", 4)
    play.join("ann", 4, waits=True)
    play.leave("admin", (play.ids["ann"], None))
    play.hear("ann")
    play.describe()
    play.wait(2 * INITIAL_DELAY_MS)
    play.describe()


PLAYS_AFTER_A_WAIT: tuple[Callable[[Play], None], ...] = (
    the_first_wait_for_company,
    the_first_wait_is_for_nobody,
)
PLAYS: tuple[Callable[[Play], None], ...] = (
    dynamic_members,
    ids_are_required,
    static_members,
    static_member_restarts_while_others_wait,
    static_member_with_another_protocol,
    protocols_are_voted_on,
    wrong_requests,
    a_full_group,
    offsets,
    other_kinds_of_members,
    silence,
    everybody_falls_silent,
    somebody_does_not_come_back,
    somebody_never_syncs,
    static_member_stays_away,
    leaving_while_others_join,
    hanging_up,
)
