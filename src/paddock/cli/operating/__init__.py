"""What a running host is asked and told: agents, approvals, automations, deliveries, knowledge, `explain`."""
