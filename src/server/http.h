#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace exl3::server {

/// Headers in the order they came or are to be sent. Names of a request are in lower case.
using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    std::string method;  ///< "GET", "POST", ...
    std::string path;    ///< decoded, without the query, no slash at its end except for "/"
    std::string query;   ///< what follows '?'
    Headers headers;
    std::string body;
    std::string remote;  ///< address of the client
    std::string id;      ///< X-Request-Id, or one of ours

    /// The value of a header, by its name in lower case; empty if there is none.
    std::string_view header(std::string_view name) const;
};

struct HttpReply {
    int status = 200;
    std::string type = "application/json";
    std::string body;
    Headers headers;
};

/// One request and its answer. All members may be called from any thread and never wait; once the
/// client is gone they do nothing.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    virtual ~Exchange() = default;
    const HttpRequest& request() const { return request_; }

    /// The whole answer.
    virtual void reply(HttpReply reply) = 0;
    /// Begins an answer that comes in pieces: events for EventSource and the clients like it.
    /// @param ping  sent when nothing else was for the server's ping interval
    virtual void begin_events(std::string ping) = 0;
    virtual void write(std::string text) = 0;
    virtual void end() = 0;
    /// `gone` is called once if the client leaves before the answer is complete, maybe at once.
    /// It runs on the I/O thread and must not block.
    virtual void on_disconnect(std::function<void()> gone) = 0;
    /// Runs `work` on the I/O thread. Work posted by one thread runs in order.
    virtual void post(std::function<void()> work) = 0;

protected:
    HttpRequest request_;
};

/// What the server does with requests.
struct HttpHandler {
    /// Looks at a request whose body has not been read; a reply refuses it. On the I/O thread.
    std::function<bool(const HttpRequest& head, HttpReply& refusal)> admit;
    /// Answers, now or later, through the exchange. On a worker thread; may block.
    std::function<void(std::shared_ptr<Exchange>)> handle;
    /// Words a failure that the protocol layer met (malformed request, too large, ...).
    std::function<HttpReply(const HttpRequest& head, int status, std::string_view what)> refuse;
    /// Adds what every answer to a request carries (CORS). On any thread.
    std::function<void(const HttpRequest&, Headers&)> decorate;
    /// Told of each finished answer: status and seconds since the request was read. On the I/O
    /// thread.
    std::function<void(const HttpRequest&, int status, double seconds)> done;
};

}  // namespace exl3::server
