"""Label, learn and look in the browser: the server behind `thonecls studio`, and its page."""
