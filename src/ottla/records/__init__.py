"""Record batches: headers, records, compression and checksums."""

from ottla.records.uncompiled import warn_if_uncompiled

warn_if_uncompiled()
