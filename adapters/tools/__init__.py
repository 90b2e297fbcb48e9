"""Tools from outside: Python modules that a configuration names, and servers of the Model Context Protocol (MCP).

An MCP server is not trusted: only tools whose definition an operator has pinned and allowed are offered, a definition
that has changed since is refused, and whatever a server does ends in one typed outcome of one call. `SqliteTasks` keeps
background tasks beside the history.
"""

from .modules import ModuleRefused, load_modules
from .sqlite_tasks import SqliteTasks, StoredTask, TaskTable

__all__ = ["ModuleRefused", "SqliteTasks", "StoredTask", "TaskTable", "load_modules"]
