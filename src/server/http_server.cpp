// Connections: the one source file that knows Boost.Asio and Beast.
#include "server/http_server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/output_parser.h"
#include "base/error.h"
#include "base/log.h"
#include "server/http_core.h"
#include "server/url.h"

namespace exl3::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSlice = size_t{64} << 10;  // bytes written under one timeout

HttpRequest read_head(const bhttp::request<bhttp::string_body>& message,
                      const std::string& remote) {
    HttpRequest r;
    r.method = std::string(message.method_string());
    split_target(message.target(), r.path, r.query);
    for (const auto& field : message) {
        std::string name(field.name_string());
        for (char& c : name)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        r.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    r.remote = remote;
    r.id = clean_request_id(r.header("x-request-id"));
    if (r.id.empty()) r.id = api::make_id("req_");
    return r;
}

/// One connection: requests one after the other.
class Connection {
public:
    Connection(tcp::socket socket, std::shared_ptr<HttpCore> core)
        : core_(std::move(core)),
          stream_(std::move(socket)),
          buffer_(core_->options.max_header_bytes + (size_t{64} << 10)) {
        Ec ec;
        const auto peer = stream_.socket().remote_endpoint(ec);
        if (!ec) remote_ = peer.address().to_string();
        stream_.socket().set_option(tcp::no_delay(true), ec);
        // A peer that vanished without a word is noticed after about two minutes.
        stream_.socket().set_option(asio::socket_base::keep_alive(true), ec);
        const int fd = stream_.socket().native_handle(), idle = 60, interval = 20, count = 3;
        ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
        ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
        core_->streams[&stream_] = true;
        ++core_->connections;
    }
    ~Connection() {
        core_->streams.erase(&stream_);
        --core_->connections;
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    asio::awaitable<void> run() {
        for (bool open = true; open && !core_->stopping;) {
            open = co_await wait_for_request();
            if (!open) break;
            core_->streams[&stream_] = false;
            open = co_await serve_one();
            core_->streams[&stream_] = true;
        }
        Ec ec;
        stream_.socket().shutdown(tcp::socket::shutdown_both, ec);
        stream_.socket().close(ec);
    }

private:
    using Parser = bhttp::request_parser<bhttp::string_body>;

    // The first byte of a request; a connection may be silent for long before it.
    asio::awaitable<bool> wait_for_request() {
        if (buffer_.size() > 0) co_return true;
        stream_.expires_after(core_->options.idle_timeout);
        Ec ec;
        const size_t n = co_await stream_.async_read_some(
            buffer_.prepare(4096), asio::redirect_error(asio::use_awaitable, ec));
        buffer_.commit(n);
        co_return !ec;
    }

    // One request and its answer. False: the connection is over.
    asio::awaitable<bool> serve_one() {
        Parser parser;
        parser.header_limit(static_cast<uint32_t>(core_->options.max_header_bytes));
        parser.body_limit(core_->options.max_body_bytes);
        stream_.expires_after(core_->options.read_timeout);
        Ec ec;
        co_await bhttp::async_read_header(stream_, buffer_, parser,
                                          asio::redirect_error(asio::use_awaitable, ec));
        HttpRequest head = read_head(parser.get(), remote_);
        if (ec) {
            co_await refuse(head, ec);
            co_return false;
        }
        const bool keep_alive = parser.keep_alive() && !core_->stopping;
        const bool chunked = parser.get().version() >= 11;
        HttpReply refusal;
        const bool admitted = core_->handler.admit(head, refusal);
        const bool whole = co_await read_body(parser, head);
        if (!whole) co_return false;
        head.body = std::move(parser.get().body());
        const auto answer = std::make_shared<Answer>(std::move(head), core_, chunked, keep_alive);
        if (admitted)
            asio::post(core_->workers, [core = core_, answer] { core->handler.handle(answer); });
        else
            answer->reply(std::move(refusal));
        const bool sent = co_await send(answer);
        co_return sent && answer->keep_alive();
    }

    asio::awaitable<bool> read_body(Parser& parser, const HttpRequest& head) {
        Ec ec;
        if (beast::iequals(head.header("expect"), "100-continue") && !parser.is_done()) {
            static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
            co_await asio::async_write(stream_, asio::buffer(kContinue),
                                       asio::redirect_error(asio::use_awaitable, ec));
        }
        if (!ec)
            co_await bhttp::async_read(stream_, buffer_, parser,
                                       asio::redirect_error(asio::use_awaitable, ec));
        if (ec) co_await refuse(head, ec);
        co_return !ec;
    }

    // Answers a request that is no HTTP or too large, then hangs up.
    asio::awaitable<void> refuse(const HttpRequest& head, const Ec& ec) {
        int status = 400;
        std::string what = "malformed request: " + ec.message();
        if (ec == bhttp::error::body_limit) {
            status = 413;
            what = fmt::format("the body is larger than {} bytes", core_->options.max_body_bytes);
        } else if (ec == bhttp::error::header_limit || ec == bhttp::error::buffer_overflow) {
            status = 431;
            what = fmt::format("the headers are larger than {} bytes",
                               core_->options.max_header_bytes);
        } else if (ec == beast::error::timeout) {
            status = 408;
            what = "the request did not arrive in time";
        } else if (ec.category() != bhttp::make_error_code(bhttp::error::bad_method).category() ||
                   ec == bhttp::error::end_of_stream || ec == bhttp::error::partial_message) {
            co_return;  // the client is gone
        }
        const auto answer = std::make_shared<Answer>(head, core_, true, false);
        answer->reply(core_->handler.refuse(head, status, what));
        co_await send(answer);
        co_await linger();
    }

    // Takes what the client still sends for a moment: closing with unread data resets the
    // connection, and the client may then lose the answer.
    asio::awaitable<void> linger() {
        Ec ec;
        stream_.socket().shutdown(tcp::socket::shutdown_send, ec);
        stream_.expires_after(std::chrono::seconds(2));
        std::array<char, 16384> waste;
        for (size_t total = 0; !ec && total < (size_t{16} << 20);)
            total += co_await stream_.async_read_some(
                asio::buffer(waste), asio::redirect_error(asio::use_awaitable, ec));
    }

    // Sends what the answer yields until it is complete. False: the client left or takes nothing.
    asio::awaitable<bool> send(const std::shared_ptr<Answer>& answer) {
        const auto start = Clock::now();
        ++core_->active;
        watch(answer);
        Ec ec;
        while (!ec) {
            const std::string text = co_await answer->next();
            if (text.empty()) break;
            // In slices, so that the timeout asks for some progress, not for all of it.
            for (size_t at = 0; at < text.size() && !ec; at += kSlice) {
                stream_.expires_after(core_->options.write_timeout);
                co_await asio::async_write(
                    stream_, asio::buffer(text.data() + at, std::min(kSlice, text.size() - at)),
                    asio::redirect_error(asio::use_awaitable, ec));
            }
        }
        const bool complete = !ec && answer->complete();
        answer->close(complete);
        stream_.socket().cancel(ec);  // ends watch()
        stream_.expires_never();
        --core_->active;
        const std::chrono::duration<double> seconds = Clock::now() - start;
        core_->handler.done(answer->request(), complete ? answer->status() : 499, seconds.count());
        co_return complete;
    }

    // Notices a client that hangs up while nothing is being written to it.
    void watch(const std::shared_ptr<Answer>& answer) {
        const int fd = stream_.socket().native_handle();
        stream_.socket().async_wait(
            tcp::socket::wait_read, [fd, weak = std::weak_ptr(answer)](const Ec& ec) {
                const auto answer = weak.lock();
                if (ec || !answer || answer->complete()) return;
                char byte = 0;
                const auto n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
                // Bytes are the next request, sent early: they wait for their turn.
                if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) answer->close(false);
            });
    }

    std::shared_ptr<HttpCore> core_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    std::string remote_;
};

asio::awaitable<void> converse(tcp::socket socket, std::shared_ptr<HttpCore> core) {
    try {
        Connection connection(std::move(socket), std::move(core));
        co_await connection.run();
    } catch (const std::exception& e) {
        log(LogLevel::warn, "connection ended: {}", e.what());
    }
}

asio::awaitable<void> accept_all(std::shared_ptr<HttpCore> core) {
    asio::steady_timer pause(core->io);
    while (core->acceptor.is_open()) {
        Ec ec;
        tcp::socket socket =
            co_await core->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, ec));
        if (ec == asio::error::operation_aborted || core->stopping) co_return;
        if (ec) {
            // Out of file descriptors, most likely: those that are open will end.
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
            continue;
        }
        if (core->connections >= core->options.max_connections) {
            static constexpr std::string_view kFull =
                "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n";
            socket.non_blocking(true, ec);
            socket.write_some(asio::buffer(kFull), ec);
            continue;
        }
        asio::co_spawn(core->io, converse(std::move(socket), core), asio::detached);
    }
}

void listen(HttpCore& core) {
    const HttpOptions& o = core.options;
    const std::string where = fmt::format("{}:{}", o.host, o.port);
    const auto fail = [&](const Ec& ec, std::string_view needed) {
        throw Error(Errc::io, {where, {}, {}}, fmt::format("{}: needed {}", ec.message(), needed));
    };
    Ec ec;
    tcp::resolver resolver(core.io);
    const auto found =
        resolver.resolve(o.host, std::to_string(o.port),
                         tcp::resolver::passive | tcp::resolver::numeric_service, ec);
    if (ec || found.empty()) fail(ec, "an address of this machine");
    const tcp::endpoint endpoint = found.begin()->endpoint();
    core.acceptor.open(endpoint.protocol(), ec);
    if (!ec) core.acceptor.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) core.acceptor.bind(endpoint, ec);
    if (!ec) core.acceptor.listen(1024, ec);
    if (ec) fail(ec, "an address and port that nothing else uses");
    core.port = core.acceptor.local_endpoint(ec).port();
}

}  // namespace

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : core_(std::make_shared<HttpCore>(std::move(options), std::move(handler))) {
    listen(*core_);
    asio::co_spawn(core_->io, accept_all(core_), asio::detached);
    core_->thread = std::jthread([core = core_.get()] {
        // Work of one request that fails must not end the others.
        for (bool done = false; !done;) try {
                core->io.run();
                done = true;
            } catch (const std::exception& e) {
                log(LogLevel::error, "request failed: {}", e.what());
            }
    });
}

HttpServer::~HttpServer() {
    stop_accepting();
    asio::post(core_->io, [core = core_] {
        Ec ec;
        for (const auto& [stream, waiting] : core->streams)
            stream->socket().shutdown(tcp::socket::shutdown_both, ec);
    });
    core_->workers.join();
    core_->thread.join();
    // What was posted too late is dropped here, so that it does not keep the core alive.
    core_->io.restart();
    core_->io.poll();
}

void HttpServer::stop_accepting() {
    asio::post(core_->io, [core = core_] {
        Ec ec;
        core->stopping = true;
        core->acceptor.close(ec);
        for (const auto& [stream, waiting] : core->streams)
            if (waiting) stream->socket().shutdown(tcp::socket::shutdown_both, ec);
    });
}

std::string HttpServer::address() const {
    const bool v6 = core_->options.host.find(':') != std::string::npos;
    const std::string host = v6 ? "[" + core_->options.host + "]" : core_->options.host;
    return fmt::format("http://{}:{}", host, port());
}

int HttpServer::port() const {
    return core_->port;
}

int HttpServer::connections() const {
    return core_->connections;
}

int HttpServer::active() const {
    return core_->active;
}

std::string_view HttpRequest::header(std::string_view name) const {
    for (const auto& [key, value] : headers)
        if (key == name) return value;
    return {};
}

}  // namespace exl3::server
