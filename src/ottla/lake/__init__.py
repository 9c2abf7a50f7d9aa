"""Topics as Iceberg tables: `ottla lake`. Needs `pip install 'ottla[lake]'`; nothing here is imported by a broker."""
