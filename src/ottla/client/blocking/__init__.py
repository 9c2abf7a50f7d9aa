"""The client for scripts, notebooks and threads: calls that return when they are done.

Each object runs the asyncio client in a thread of its own. Any thread may use it.
"""
