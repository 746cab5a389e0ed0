"""Why a goal is missed, where it is: shown in results.md beside the goals that are."""

NOTES: dict[str, str] = {}
