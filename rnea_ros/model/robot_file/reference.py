"""The schema as tables in Markdown, for docs/robot_file.md."""

from __future__ import annotations

from collections.abc import Iterator

from .schema import SCHEMA, Schema

NAMES = {"joint": "JOINT", "any joint": "JOINT", "link": "LINK", None: "NAME"}


def markdown() -> str:
    """A table of the keys at the top, then one for each section."""
    properties = SCHEMA["properties"]
    alone = {key: entry for key, entry in properties.items() if entry.get("type") != "object"}
    parts = [_table(_rows(alone, ""))]
    parts += [f"### {key}\n\n{entry['description']}\n\n{_table(_rows(_inside(entry), _entry(entry)))}"
              for key, entry in properties.items() if key not in alone]
    return "\n".join(parts)


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    lines = [f"| `{key}` | {unit} | {text} |" for key, unit, text in rows]
    return "\n".join(["| key | unit | meaning |", "|---|---|---|", *lines, ""])


def _entry(schema: Schema) -> str:
    """"JOINT." for a mapping from names of joints."""
    return f"{NAMES[schema.get('propertyNames', {}).get('format')]}." if "properties" not in schema else ""


def _inside(schema: Schema) -> dict[str, Schema]:
    found = schema if "properties" in schema else schema["additionalProperties"]
    return found.get("properties", {})


def _rows(properties: dict[str, Schema], prefix: str) -> Iterator[tuple[str, str, str]]:
    for key, entry in properties.items():
        text, _, unit = entry["description"].rstrip(".]").partition(" [")
        yield prefix + key, unit, f"{text}." + _choice(entry)
        if entry.get("not") != {} and (inside := _inside(entry) if "object" in entry.get("type", ()) else {}):
            yield from _rows(inside, f"{prefix}{key}.{_entry(entry)}")


def _choice(schema: Schema) -> str:
    words = [f"`{word}`" for word in schema.get("enum", [])]
    return f" {', '.join(words)}." if len(words) > 1 else ""
