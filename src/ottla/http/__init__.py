"""The HTTP door: REST, the web console, metrics, health. It translates, and asks the broker; it keeps nothing.

server       the port: bound early, served once everything here is imported
app          every endpoint there is, and what goes around them
endpoints    how an endpoint is declared, and what its handler is given
openapi      the description, made of the declarations
problems     what can go wrong, as problem+json
health, cluster, totals, topics, messages, produce, tail, groups, resets, consumers, dmqp, metrics    the endpoints
pages        the web console's files
opening      partitions one after the other, without holding up the loop
reading, payloads, filters, cursors    records as JSON: from where, how shown, which of them
"""
