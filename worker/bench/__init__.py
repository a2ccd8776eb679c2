"""``mandua bench``: what a message costs and how many go through, on this machine, with a scripted model.

``workload`` says what is said and what the model answers; ``scene`` starts servers and workers; each other module
measures one thing and returns ``Figure``s; ``peer`` runs the same messages through the in-process original.
"""
