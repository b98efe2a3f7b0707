"""Pictures and pages of a recording: Graphviz graphs, HTML reports."""
