"""Ledgers of this process alone, which stores keep by name while they are used."""

from __future__ import annotations

import weakref

from .stores.store import MemoryStore, missing

IN_MEMORY: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()


def kept_in_memory(dataset: str | None) -> MemoryStore:
    """The store of this name, or the only one."""
    names = sorted(IN_MEMORY)
    name = names[0] if dataset is None and len(names) == 1 else dataset
    store = None if name is None else IN_MEMORY.get(name)
    if store is None:
        raise missing(dataset, names, MemoryStore.shown)
    return store
