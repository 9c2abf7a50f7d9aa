"""The contract of every catalog, whatever its storage.

A test class inherits CatalogContract and is given two fixtures: `catalog`, from here, and `reopen`, its own,
which closes the catalog it opened last, if any, and opens what is stored again, as a restarted broker would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from ottla.core.errors import (
    InvalidPartitions,
    InvalidRequest,
    InvalidTopic,
    ResourceNotFound,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from ottla.core.ids import TopicId
from ottla.storage.catalog.acl_filter import AclFilter
from ottla.storage.catalog.catalog import Catalog, edit_keys
from ottla.storage.catalog.entries import (
    Acl,
    AclOperation,
    AclPermission,
    ConfigResource,
    ConfigScope,
    DelegationToken,
    PatternType,
    Quota,
    QuotaEntity,
    QuotaEntityType,
    ResourceConfigs,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    Topic,
)
from ottla.storage.catalog.view import Change

Reopen = Callable[[], Catalog]

ANN = ScramCredential("ann", ScramMechanism.SCRAM_SHA_256, b"salt", 4096, b"s" * 32, b"k" * 32)
ANN_512 = ScramCredential("ann", ScramMechanism.SCRAM_SHA_512, b"pepper", 8192, b"S" * 64, b"K" * 64)

ANN_READS_ORDERS = Acl(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:ann",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
BOB_WRITES_AUDIT = replace(
    ANN_READS_ORDERS,
    resource_name="audit-",
    pattern_type=PatternType.PREFIXED,
    principal="User:bob",
    operation=AclOperation.WRITE,
)

USER_ANN = QuotaEntity.of({QuotaEntityType.USER: "ann"})
ALL_BROKERS = ConfigResource(ConfigScope.BROKER, "")


@pytest.fixture
def catalog(reopen: Reopen) -> Catalog:
    return reopen()


def refuse(_: Mapping[str, object]) -> Mapping[str, str]:
    raise InvalidRequest("not like this")


class TopicContract:
    def test_a_new_catalog_is_empty(self, catalog: Catalog) -> None:
        view = catalog.view

        assert not view.topics
        assert not view.credentials
        assert not view.acls
        assert not view.quotas
        assert not view.configs

    def test_the_cluster_id_has_kafkas_form_and_survives_a_restart(self, reopen: Reopen) -> None:
        cluster_id = reopen().cluster_id

        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id)
        assert reopen().cluster_id == cluster_id

    def test_a_topic_is_found_by_name_and_by_id(self, catalog: Catalog) -> None:
        topic = catalog.create_topic("orders", 3, {"retention.ms": "1000"}, is_internal=True)

        assert topic == Topic("orders", topic.id, 3, {"retention.ms": "1000"}, is_internal=True)
        assert catalog.view.topic("orders") == topic
        assert catalog.view.topic_by_id(topic.id) == topic

    def test_a_topic_survives_a_restart_as_it_was(self, reopen: Reopen) -> None:
        created = [
            reopen().create_topic("orders", 3, {"retention.ms": "1000", "cleanup.policy": "compact"}),
        ]
        created.append(reopen().create_topic("__internal", 50, is_internal=True))

        assert reopen().view.topics == {topic.name: topic for topic in created}

    def test_a_topic_re_created_under_its_name_has_another_id(self, catalog: Catalog) -> None:
        first = catalog.create_topic("orders", 1)
        catalog.delete_topic(first.id)
        second = catalog.create_topic("orders", 1)

        assert second.id != first.id
        with pytest.raises(UnknownTopicId):
            catalog.delete_topic(first.id)
        assert catalog.view.topic("orders") == second

    def test_a_topic_takes_the_id_it_is_given(self, catalog: Catalog) -> None:
        given = TopicId.random()

        assert catalog.create_topic("orders", 1, topic_id=given).id == given
        with pytest.raises(TopicAlreadyExists, match="'orders' already has the id"):
            catalog.create_topic("payments", 1, topic_id=given)

    def test_a_name_that_is_taken_is_refused(self, catalog: Catalog) -> None:
        topic = catalog.create_topic("or.ders", 1)

        with pytest.raises(TopicAlreadyExists):
            catalog.create_topic("or.ders", 5)
        assert catalog.view.topics == {"or.ders": topic}

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "a b", "x" * 250])
    def test_an_illegal_name_is_refused(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(InvalidTopic):
            catalog.create_topic(name, 1)
        assert not catalog.view.topics

    @pytest.mark.parametrize(("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("_._", "...")])
    def test_names_that_would_share_a_metric_are_refused_as_kafka_does(
        self, reopen: Reopen, first: str, second: str
    ) -> None:
        topic = reopen().create_topic(first, 1)
        catalog = reopen()

        with pytest.raises(InvalidTopic, match="collide in metric names"):
            catalog.create_topic(second, 1)
        catalog.delete_topic(topic.id)
        assert catalog.create_topic(second, 1).name == second

    def test_names_that_differ_in_letter_case_are_different_topics(self, catalog: Catalog) -> None:
        catalog.create_topic("Orders", 1)
        catalog.create_topic("orders", 2)

        assert [catalog.view.topic(name).partitions for name in ("Orders", "orders")] == [1, 2]

    @pytest.mark.parametrize("partitions", [0, -1])
    def test_a_topic_without_partitions_is_refused(self, catalog: Catalog, partitions: int) -> None:
        with pytest.raises(InvalidPartitions):
            catalog.create_topic("orders", partitions)
        assert not catalog.view.topics

    def test_a_topic_can_be_given_more_partitions(self, reopen: Reopen) -> None:
        catalog = reopen()
        topic = catalog.create_topic("orders", 3, {"a": "1"})

        grown = catalog.grow_topic(topic.id, 12)

        assert grown == replace(topic, partitions=12)
        assert reopen().view.topic("orders") == grown

    @pytest.mark.parametrize("partitions", [3, 2, 0, -1])
    def test_a_topic_never_loses_partitions(self, catalog: Catalog, partitions: int) -> None:
        topic = catalog.create_topic("orders", 3)

        with pytest.raises(InvalidPartitions):
            catalog.grow_topic(topic.id, partitions)
        assert catalog.view.topic("orders") == topic

    def test_config_keys_are_set_and_deleted_in_one_change(self, reopen: Reopen) -> None:
        catalog = reopen()
        topic = catalog.create_topic("orders", 1, {"a": "1", "b": "2", "c": "3"})

        changed = catalog.change_topic_configs(topic.id, edit_keys({"a": "9", "d": "4"}, {"b", "unknown"}))

        assert changed == replace(topic, configs={"a": "9", "c": "3", "d": "4"})
        assert reopen().view.topic("orders") == changed

    def test_an_edit_that_refuses_changes_nothing(self, catalog: Catalog) -> None:
        topic = catalog.create_topic("orders", 1, {"a": "1"})

        with pytest.raises(InvalidRequest, match="not like this"):
            catalog.change_topic_configs(topic.id, refuse)
        assert catalog.view.topic("orders") == topic

    def test_configs_are_copied_when_they_are_handed_in(self, catalog: Catalog) -> None:
        configs = {"a": "1"}
        catalog.create_topic("orders", 1, configs)
        configs["a"] = "2"

        assert catalog.view.topic("orders").configs == {"a": "1"}

    def test_a_deleted_topic_leaves_nothing_behind(self, reopen: Reopen) -> None:
        catalog = reopen()
        topic = catalog.create_topic("orders", 1, {"a": "1"})
        kept = catalog.create_topic("payments", 1, {"a": "2"})

        assert catalog.delete_topic(topic.id) == topic

        assert catalog.view.topics == {"payments": kept}
        assert catalog.view.topics_by_id == {kept.id: kept}
        assert reopen().view.topics == {"payments": kept}

    def test_a_topic_that_does_not_exist_cannot_be_changed(self, catalog: Catalog) -> None:
        nobody = TopicId.random()

        with pytest.raises(UnknownTopicId):
            catalog.grow_topic(nobody, 2)
        with pytest.raises(UnknownTopicId):
            catalog.change_topic_configs(nobody, edit_keys({"a": "1"}))
        with pytest.raises(UnknownTopicId):
            catalog.delete_topic(nobody)
        with pytest.raises(UnknownTopicOrPartition):
            catalog.view.topic("orders")


class ViewContract:
    def test_a_view_once_taken_stays_as_it_was(self, catalog: Catalog) -> None:
        topic = catalog.create_topic("orders", 1)
        taken = catalog.view
        catalog.delete_topic(topic.id)
        catalog.put_credential(ANN)

        assert taken.topics == {"orders": topic}
        assert not taken.credentials
        assert catalog.view is not taken

    def test_a_change_without_effect_does_not_notify_listeners(self, catalog: Catalog) -> None:
        topic = catalog.create_topic("orders", 1, {"a": "1"})
        catalog.put_credential(ANN)
        catalog.add_acls([ANN_READS_ORDERS])
        told: list[Change] = []
        catalog.listen(told.append)
        taken = catalog.view

        catalog.change_topic_configs(topic.id, edit_keys({"a": "1"}, {"b"}))
        catalog.put_credential(ANN)
        catalog.add_acls([ANN_READS_ORDERS])
        catalog.add_acls([])
        catalog.delete_acls(AclFilter(principal="User:nobody"))
        catalog.change_quota(USER_ANN, edit_keys(delete={"producer_byte_rate"}))
        catalog.change_configs(ALL_BROKERS, edit_keys())

        assert told == []
        assert catalog.view is taken

    def test_a_listener_is_told_of_every_change_in_order(self, catalog: Catalog) -> None:
        told: list[Change] = []
        catalog.listen(told.append)

        topic = catalog.create_topic("orders", 1)
        grown = catalog.grow_topic(topic.id, 2)
        changed = catalog.change_topic_configs(topic.id, edit_keys({"a": "1"}))
        catalog.delete_topic(topic.id)
        catalog.put_credential(ANN)
        catalog.change_configs(ALL_BROKERS, edit_keys({"a": "1"}))
        catalog.change_quota(USER_ANN, edit_keys({"producer_byte_rate": 5.0}))

        assert told == [
            Change(None, topic),
            Change(topic, grown),
            Change(grown, changed),
            Change(changed, None),
            Change(None, ANN),
            Change(None, ResourceConfigs(ALL_BROKERS, {"a": "1"})),
            Change(None, Quota(USER_ANN, {"producer_byte_rate": 5.0})),
        ]

    def test_a_listener_finds_the_change_in_the_view(self, catalog: Catalog) -> None:
        seen: list[set[str]] = []
        catalog.listen(lambda _: seen.append(set(catalog.view.topics)))

        topic = catalog.create_topic("orders", 1)
        catalog.delete_topic(topic.id)

        assert seen == [{"orders"}, set()]

    def test_a_refused_change_does_not_notify_listeners(self, catalog: Catalog) -> None:
        told: list[Change] = []
        catalog.listen(told.append)

        with pytest.raises(InvalidTopic):
            catalog.create_topic("a/b", 1)

        assert told == []


class SecurityContract:
    def test_a_credential_survives_a_restart(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.put_credential(ANN)
        catalog.put_credential(ANN_512)

        assert reopen().view.credentials == {
            ("ann", ScramMechanism.SCRAM_SHA_256): ANN,
            ("ann", ScramMechanism.SCRAM_SHA_512): ANN_512,
        }

    def test_a_new_password_replaces_the_old(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.put_credential(ANN)
        changed = replace(ANN, salt=b"other", stored_key=b"x" * 32)
        catalog.put_credential(changed)

        assert list(catalog.view.credentials.values()) == [changed]
        assert list(reopen().view.credentials.values()) == [changed]

    def test_the_expiry_of_a_password_survives_a_restart(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.put_credential(ANN)
        catalog.put_credential(replace(ANN, expires_ms=1_800_000_000_000))

        assert [one.expires_ms for one in reopen().view.credentials.values()] == [1_800_000_000_000]

    def test_deleting_a_credential_leaves_the_users_other_mechanism(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.put_credential(ANN)
        catalog.put_credential(ANN_512)
        catalog.delete_credential("ann", ScramMechanism.SCRAM_SHA_256)

        assert list(reopen().view.credentials.values()) == [ANN_512]

    def test_a_credential_that_is_not_there_cannot_be_deleted(self, catalog: Catalog) -> None:
        catalog.put_credential(ANN)

        with pytest.raises(ResourceNotFound, match="SCRAM_SHA_512"):
            catalog.delete_credential("ann", ScramMechanism.SCRAM_SHA_512)

    def test_delegation_tokens_survive_a_restart_and_can_be_changed_and_deleted(self, reopen: Reopen) -> None:
        token = DelegationToken("id-1", "User:ann", "User:admin", ("User:bob",), 1, 2, 3)
        catalog = reopen()
        catalog.put_token(token)
        catalog.put_token(replace(token, id="id-2", renewers=()))
        catalog.put_token(replace(token, expires_ms=3))
        catalog.delete_tokens(["id-2", "id-3"])

        assert catalog.view.tokens == {"id-1": replace(token, expires_ms=3)}
        assert reopen().view.tokens == {"id-1": replace(token, expires_ms=3)}

    def test_acls_survive_a_restart_and_adding_one_twice_is_adding_it_once(self, reopen: Reopen) -> None:
        reopen().add_acls([ANN_READS_ORDERS, BOB_WRITES_AUDIT, ANN_READS_ORDERS])
        catalog = reopen()
        catalog.add_acls([ANN_READS_ORDERS])

        assert catalog.view.acls == {ANN_READS_ORDERS, BOB_WRITES_AUDIT}
        assert reopen().view.acls == {ANN_READS_ORDERS, BOB_WRITES_AUDIT}

    def test_one_bad_acl_refuses_all(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidRequest):
            catalog.add_acls([ANN_READS_ORDERS, replace(BOB_WRITES_AUDIT, operation=AclOperation.ANY)])
        assert not catalog.view.acls

    def test_acls_are_deleted_by_filter(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.add_acls([ANN_READS_ORDERS, BOB_WRITES_AUDIT])

        assert catalog.delete_acls(AclFilter(principal="User:bob")) == {BOB_WRITES_AUDIT}
        assert catalog.delete_acls(AclFilter(principal="User:bob")) == frozenset()

        assert reopen().view.acls == {ANN_READS_ORDERS}

    def test_a_filter_with_an_unknown_code_deletes_nothing(self, catalog: Catalog) -> None:
        catalog.add_acls([ANN_READS_ORDERS])

        with pytest.raises(InvalidRequest):
            catalog.delete_acls(AclFilter(resource_type=ResourceType.UNKNOWN))
        assert catalog.view.acls == {ANN_READS_ORDERS}


class LimitsContract:
    def test_a_quota_survives_a_restart(self, reopen: Reopen) -> None:
        both = QuotaEntity.of({QuotaEntityType.USER: "ann", QuotaEntityType.CLIENT_ID: None})
        anybody = QuotaEntity.of({QuotaEntityType.USER: None})
        address = QuotaEntity.of({QuotaEntityType.IP: "::1"})
        catalog = reopen()
        for entity in (USER_ANN, both, anybody, address):
            catalog.change_quota(entity, edit_keys({"some_rate": 0.1, "other_rate": 1e18}))

        wanted = {"some_rate": 0.1, "other_rate": 1e18}
        assert {entity: quota.limits for entity, quota in reopen().view.quotas.items()} == dict.fromkeys(
            (USER_ANN, both, anybody, address), wanted
        )

    def test_a_quota_without_limits_is_deleted(self, reopen: Reopen) -> None:
        catalog = reopen()
        catalog.change_quota(USER_ANN, edit_keys({"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}))
        catalog.change_quota(USER_ANN, edit_keys(delete={"producer_byte_rate"}))
        assert catalog.view.quotas[USER_ANN].limits == {"consumer_byte_rate": 2.0}

        catalog.change_quota(USER_ANN, edit_keys(delete={"consumer_byte_rate"}))
        assert not catalog.view.quotas
        assert not reopen().view.quotas

    @pytest.mark.parametrize(
        "parts",
        [
            {},
            {QuotaEntityType.USER: ""},
            {QuotaEntityType.USER: "ann", QuotaEntityType.IP: "::1"},
        ],
    )
    def test_a_quota_for_what_kafka_does_not_know_is_refused(
        self, catalog: Catalog, parts: dict[QuotaEntityType, str | None]
    ) -> None:
        with pytest.raises(InvalidRequest):
            catalog.change_quota(QuotaEntity.of(parts), edit_keys({"producer_byte_rate": 1.0}))
        assert not catalog.view.quotas

    def test_a_limit_that_is_not_a_number_is_refused(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidRequest, match="producer_byte_rate"):
            catalog.change_quota(USER_ANN, edit_keys({"producer_byte_rate": float("nan")}))

    def test_dynamic_configs_survive_a_restart_each_for_its_own_resource(self, reopen: Reopen) -> None:
        broker = ConfigResource(ConfigScope.BROKER, "1")
        group = ConfigResource(ConfigScope.GROUP, "1")
        catalog = reopen()
        for resource in (ALL_BROKERS, broker, group):
            catalog.change_configs(resource, edit_keys({"x": repr(resource), "y": ""}))
        catalog.change_configs(broker, edit_keys(delete={"x", "y"}))

        assert reopen().view.configs == {
            resource: ResourceConfigs(resource, {"x": repr(resource), "y": ""}) for resource in (ALL_BROKERS, group)
        }

    def test_names_may_hold_any_text(self, reopen: Reopen) -> None:
        odd = 'Ünïcode "quoted" \N{SNOWMAN}\0\n;--'
        entity = QuotaEntity.of({QuotaEntityType.CLIENT_ID: odd})
        acl = replace(ANN_READS_ORDERS, resource_type=ResourceType.GROUP, resource_name=odd, principal=odd)
        catalog = reopen()
        catalog.put_credential(replace(ANN, user=odd))
        catalog.add_acls([acl])
        catalog.change_quota(entity, edit_keys({odd: 1.0}))
        catalog.change_configs(ConfigResource(ConfigScope.GROUP, odd), edit_keys({odd: odd}))
        catalog.create_topic("orders", 1, {odd: odd})
        written = catalog.view

        assert reopen().view == written


class ProducerIdContract:
    def test_no_producer_id_is_handed_out_twice(self, reopen: Reopen) -> None:
        blocks = [reopen().next_producer_ids() for _ in range(3)]
        catalog = reopen()
        blocks += [catalog.next_producer_ids(count) for count in (1, 7, 1000)]

        assert [block.count for block in blocks] == [1000, 1000, 1000, 1, 7, 1000]
        ids = [producer_id for block in blocks for producer_id in block.ids]
        assert len(ids) == len(set(ids))
        assert min(ids) >= 0

    def test_a_block_of_no_ids_is_a_bug(self, catalog: Catalog) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            catalog.next_producer_ids(0)


class CatalogContract(TopicContract, ViewContract, SecurityContract, LimitsContract, ProducerIdContract):
    """All of it."""
