from __future__ import annotations

_GROUP_RANK_CACHE: dict[str, list[int]] = {}
