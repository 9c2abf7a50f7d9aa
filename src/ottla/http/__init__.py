"""The HTTP door: REST, metrics, health. It translates, and asks the broker; it keeps nothing.

server       the port: bound early, served once everything here is imported
app          every endpoint there is, and what goes around them
endpoints    how an endpoint is declared, and what its handler is given
openapi      the description, made of the declarations
problems     what can go wrong, as problem+json
health, cluster, topics, messages, produce, tail, groups, resets, consumers, metrics    the endpoints
reading, payloads, filters, cursors    records as JSON: from where, how shown, which of them
"""
