"""Preparation of a run: creates topics, and pins schemas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.link import link_to
from ottla.spark.pipelines.known_columns import beside_columns, known_columns
from ottla.spark.pipelines.reporting import ensure_topics
from ottla.spark.pipelines.sampling import with_schema

if TYPE_CHECKING:
    from ottla.client.client import Client
    from ottla.spark.pipelines.definition import Pipeline, Source
    from ottla.spark.pipelines.state_folder import StateFolder


def kafka_of(pipeline: Pipeline) -> dict[str, str]:
    # Topics written by a pipeline are exactly-once for readers of committed records, such as the next pipeline.
    return {"isolation.level": "read_committed", **pipeline.kafka, "bootstrap.servers": pipeline.broker}


def with_schemas(pipeline: Pipeline, state: StateFolder) -> Pipeline:
    """The pipeline with the schemas pinned by an earlier run, or inferred from the topics' first records."""
    pinned = state.schemas()
    kafka = kafka_of(pipeline)
    check_topics(pipeline)

    def settled(source: Source) -> Source:
        if source.schema is None and source.name in pinned and source.format.is_pinned:
            return replace(source, schema=pinned[source.name])
        return with_schema(source, kafka)

    sources = {name: settled(source) for name, source in pipeline.sources.items()}
    for source in sources.values():
        _check_event_time(source)
    return replace(pipeline, sources=sources)


def with_newer_schemas(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the schemas that its registries have now."""
    sources = {}
    for name, source in pipeline.sources.items():
        found = None if source.format.is_pinned else source.format.found_schema(source)
        sources[name] = source if found is None else replace(source, schema=found)
    return pipeline if sources == pipeline.sources else replace(pipeline, sources=sources)


def pin_schemas(asked: Pipeline, settled: Pipeline, state: StateFolder) -> None:
    """Save inferred schemas for later runs."""
    found = {
        name: source.schema
        for name, source in settled.sources.items()
        if source.schema is not None and asked.sources[name].schema is None and source.format.is_pinned
    }
    if found:
        state.pin_schemas(found)


def _check_event_time(source: Source) -> None:
    known = (*(known_columns(source) or {}), *beside_columns(source))
    if source.event_time is not None and source.event_time not in known:
        near = suggestion(source.event_time, known)
        raise ConfigError(f"[source.{source.name}] event_time: there is no column {source.event_time}{near}")


def check_topics(pipeline: Pipeline) -> None:
    link = link_to(kafka_of(pipeline))
    existing = set(link.call(link.client.topics()))
    for source in pipeline.sources.values():
        for topic in source.topics:
            if topic not in existing:
                raise ConfigError(
                    f"[source.{source.name}] topics: there is no topic {topic} at {pipeline.broker}"
                    f"{suggestion(topic, existing)}"
                )


def make_topics(pipeline: Pipeline) -> None:
    """The topics that are written to."""
    wanted = [topic for sink in pipeline.sinks.values() for topic in sink.topics]
    wanted += [source.dead_letters for source in pipeline.sources.values() if source.has_dead_letters]
    link = link_to(kafka_of(pipeline))

    async def make(client: Client) -> None:
        await ensure_topics(client, wanted)

    link.call(make(link.client))
