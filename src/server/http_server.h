#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "server/http.h"

namespace exl3::server {

struct HttpOptions {
    std::string host = "127.0.0.1";
    int port = 8080;  ///< 0: any free one
    size_t max_body_bytes = size_t{64} << 20;
    size_t max_header_bytes = size_t{64} << 10;
    int max_connections = 4096;
    int workers = 4;  ///< threads that read requests, render prompts and load models
    std::chrono::milliseconds idle_timeout{75'000};   ///< between requests of a connection
    std::chrono::milliseconds read_timeout{60'000};   ///< for a request to arrive in full
    std::chrono::milliseconds write_timeout{60'000};  ///< for a client to take any output
    std::chrono::milliseconds ping_interval{15'000};  ///< 0: no pings
};

struct HttpCore;

/// HTTP/1.1 over TCP: keep-alive, chunked answers, Expect, limits and timeouts. One thread does all
/// I/O and never waits for a client or for work; slow or silent clients cost their buffers alone.
class HttpServer {
public:
    /// Listens. Throws Error{io} naming the address if it cannot.
    HttpServer(HttpOptions options, HttpHandler handler);
    /// Closes what is open. Exchanges that others still hold do nothing from then on.
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    std::string address() const;  ///< "http://127.0.0.1:8080"
    int port() const;
    int connections() const;  ///< open now
    int active() const;       ///< requests being answered
    /// Accepts no more connections and closes idle ones; answers in progress go on.
    void stop_accepting();

private:
    std::shared_ptr<HttpCore> core_;
};

}  // namespace exl3::server
