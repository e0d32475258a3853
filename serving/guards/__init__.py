"""Guards: mistakes of prefill/decode serving that nobody reports, found in a configuration before it is deployed."""
