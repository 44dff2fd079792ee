"""From what forms come in (schemas, dictionaries, codebooks, label files) to captured forms."""
