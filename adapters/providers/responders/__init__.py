"""Models over the network: each turns a context into a streamed reply, and offers tools."""
