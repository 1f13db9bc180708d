"""Markdown, for GitHub, GitLab, chats and tickets."""
