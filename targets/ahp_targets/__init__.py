"""The bundled targets: one room per harness, all of the same shape (engine, emit, lift, codec)."""
