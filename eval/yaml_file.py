"""YAML in which every key has one meaning."""

from __future__ import annotations

from typing import Any

import yaml


class OneMeaningLoader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML as usual, but a key that stands twice is refused: the loader would silently take the last."""


def _mapping(loader: OneMeaningLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key that is no word", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
        seen.add(key.value)
    return dict(loader.construct_pairs(node, deep=True))


OneMeaningLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(text: str) -> Any:
    """yaml.YAMLError for text that is none, and for a key that stands twice."""
    return yaml.load(text, Loader=OneMeaningLoader)  # noqa: S506  a safe loader
