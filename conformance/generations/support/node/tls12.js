// TLS 1.2 for clients that ask for TLS 1.0 by name, which Node.js has switched off and the service no longer speaks.
// Users of these clients do the same. To be loaded before the client, which keeps the function that it finds.

"use strict";

const https = require("https");

const request = https.request;
https.request = (options, callback) => request({ ...options, secureProtocol: "TLSv1_2_method" }, callback);
