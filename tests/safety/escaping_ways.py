"""Ways out of a sandbox that are open at L0."""

CONTROL = (
    *("read_the_hosts_data", "list_the_hosts_data", "read_another_plugins_directory", "read_another_plugins_home"),
    *("read_another_conversation", "connect_to_the_hosts_port", "connect_to_an_abstract_socket"),
    *("connect_to_a_socket_of_the_host", "attach_the_hosts_shared_memory", "signal_the_host", "see_other_processes"),
    *("read_the_hosts_environment", "follow_a_link_of_ones_own", "hard_link_to_the_secret", "read_the_list_of_users"),
    *("write_into_the_plugins_directory", "read_the_hosts_memory", "find_the_machines_settings"),
)
"""Ways that are open at L0 and harmless there: were they closed, the attempts would prove nothing."""
