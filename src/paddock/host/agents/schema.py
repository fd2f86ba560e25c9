"""The agents file as a JSON schema, so that editors complete it and mark what is wrong while it is written."""

import json

from paddock.host.agents.file import AgentsFile


def agents_schema() -> str:
    """As shipped in docs/agents.schema.json."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **AgentsFile.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
