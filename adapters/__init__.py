"""Everything that touches the world: devices, providers, storage, the daemon and the command line.

Each subfolder stands behind ports of `voicechart.engines` and may need an extra; importing one never needs it.
"""
