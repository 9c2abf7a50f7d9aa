"""The HTTP server: REST, the web console, metrics, health. It translates requests to Kafka requests, and is stateless.

server       the port: bound early, served once everything here is imported
app          all endpoints, and the middleware
endpoints    how an endpoint is declared, and the input of its handler
openapi      the OpenAPI description, generated from the declarations
problems     errors, as problem+json
health, cluster, totals, topics, messages, produce, tail, groups, resets, consumers, dmqp, metrics    the endpoints
pages        the web console's files
opening      opens partitions one by one, yielding to the event loop
reading, payloads, filters, cursors    records as JSON: positions, encodings, filters
"""
