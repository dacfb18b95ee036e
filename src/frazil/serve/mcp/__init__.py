"""serve/mcp: tools for agents, by the Model Context Protocol. They read; none changes anything.

protocol.py      McpServer: JSON-RPC messages in, answers out, without state
tools.py         the nine tools: what each returns
tool_params.py   the parameters of each
answer.py        ToolAnswer: rows, how many there are, how to narrow them
fitting.py       makes answers fit: 40 KB, and nothing is left out in silence
tool_schemas.py  the parameters of a tool as JSON Schema
sources.py       McpSource: where tools read; links to the page
stdio.py         messages on standard input and output, one per line
"""
