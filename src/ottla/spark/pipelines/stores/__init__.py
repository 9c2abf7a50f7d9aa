"""Where the files of tables are kept: folders and object stores."""
