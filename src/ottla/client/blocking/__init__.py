"""The blocking client, for scripts, notebooks and threads.

Each object runs the asyncio client in a background thread. All of them are thread-safe.
"""
