#pragma once
// The state of an HttpServer and the answers it sends. Included by http_server.cpp alone: together
// they are all that knows Boost.
#include <fmt/format.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/status.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "server/http_server.h"

namespace exl3::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::ip::tcp;
using Ec = boost::system::error_code;

struct HttpCore {
    HttpCore(HttpOptions o, HttpHandler h)
        : options(std::move(o)),
          handler(std::move(h)),
          acceptor(io),
          workers(static_cast<size_t>(options.workers)) {}

    HttpOptions options;
    HttpHandler handler;
    asio::io_context io{1};
    tcp::acceptor acceptor;
    asio::thread_pool workers;
    std::atomic<int> connections = 0, active = 0;
    std::atomic<bool> stopping = false;
    int port = 0;  ///< that it listens on
    /// Open connections and whether each waits for a request; I/O thread only.
    std::map<beast::tcp_stream*, bool> streams;
    std::jthread thread;
};

/// Until a wake-up.
inline constexpr auto kForever = std::chrono::hours(24 * 365);

/// Text on its way to a client. Producers are any threads; the connection takes it.
class Answer : public Exchange {
public:
    Answer(HttpRequest request, std::shared_ptr<HttpCore> core, bool chunked, bool keep_alive)
        : core_(std::move(core)),
          ready_(core_->io),
          options_(core_->options),
          chunked_(chunked),
          keep_alive_(keep_alive) {
        request_ = std::move(request);
    }

    void reply(HttpReply r) override {
        std::string text = head(r.status, r.type, r.headers);
        if (r.status != 204) text += fmt::format("Content-Length: {}\r\n", r.body.size());
        text += "\r\n";
        if (request_.method != "HEAD") text += r.body;
        const std::lock_guard lock(mutex_);
        if (begun_) return;
        begun_ = ended_ = true;
        status_ = r.status;
        pending_ = std::move(text);
        notify();
    }
    void begin_events(std::string ping) override {
        std::string text = head(200, "text/event-stream; charset=utf-8",
                                {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
        // Without chunks the end of the connection is the end of the answer.
        if (chunked_)
            text += "Transfer-Encoding: chunked\r\n";
        else
            keep_alive_ = false;
        const std::lock_guard lock(mutex_);
        if (begun_) return;
        begun_ = events_ = true;
        status_ = 200;
        ping_ = std::move(ping);
        pending_ = text + "\r\n";
        notify();
    }
    void write(std::string text) override {
        const std::lock_guard lock(mutex_);
        if (!events_ || ended_ || text.empty()) return;
        append(text);
        notify();
    }
    void end() override {
        const std::lock_guard lock(mutex_);
        if (!events_ || ended_) return;
        ended_ = true;
        if (chunked_) pending_ += "0\r\n\r\n";
        notify();
    }
    void on_disconnect(std::function<void()> gone) override {
        bool now = false;
        {
            const std::lock_guard lock(mutex_);
            now = closed_;
            if (!now) gone_ = std::move(gone);
        }
        if (now) gone();
    }
    void post(std::function<void()> work) override { asio::post(core_->io, std::move(work)); }

    // ---- for the connection, on the I/O thread

    /// Waits for output and takes it; empty when the answer is complete.
    asio::awaitable<std::string> next() {
        for (;;) {
            bool ping = false;
            {
                const std::lock_guard lock(mutex_);
                if (!pending_.empty()) co_return std::exchange(pending_, {});
                if (ended_ || closed_) co_return std::string();
                notified_ = false;
                ping = events_ && options_.ping_interval.count() > 0;
            }
            if (ping)
                ready_.expires_after(options_.ping_interval);
            else
                ready_.expires_after(kForever);
            Ec ec;
            co_await ready_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
            if (ec) continue;  // woken by notify()
            const std::lock_guard lock(mutex_);
            if (events_ && !ended_ && pending_.empty()) append(ping_);
        }
    }
    /// The client left, or the answer went out in full.
    void close(bool complete) {
        std::function<void()> gone;
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            gone = std::exchange(gone_, nullptr);
            pending_.clear();
        }
        if (gone && !complete) gone();
        ready_.cancel();
    }
    bool complete() {
        const std::lock_guard lock(mutex_);
        return ended_ && pending_.empty();
    }
    bool keep_alive() const { return keep_alive_; }
    void no_keep_alive() { keep_alive_ = false; }
    int status() const { return status_; }

private:
    std::string head(int status, const std::string& type, const Headers& headers) const {
        std::string text = fmt::format(
            "HTTP/1.1 {} {}\r\n", status,
            std::string_view(bhttp::obsolete_reason(static_cast<bhttp::status>(status))));
        const auto add = [&](std::string_view name, std::string_view value) {
            text.append(name).append(": ").append(value).append("\r\n");
        };
        add("Server", "exl3");
        add("Connection", keep_alive_ ? "keep-alive" : "close");
        if (!type.empty()) add("Content-Type", type);
        add("X-Request-Id", request_.id);
        Headers all = headers;
        core_->handler.decorate(request_, all);
        for (const auto& [name, value] : all) add(name, value);
        return text;
    }
    void append(const std::string& text) {
        if (!chunked_) {
            pending_ += text;
            return;
        }
        pending_ += fmt::format("{:x}\r\n", text.size());
        pending_ += text;
        pending_ += "\r\n";
    }
    // With mutex_ held. One wake-up for any number of pieces.
    void notify() {
        if (notified_ || closed_) return;
        notified_ = true;
        post([self = std::static_pointer_cast<Answer>(shared_from_this())] {
            self->ready_.cancel();
        });
    }

    std::shared_ptr<HttpCore> core_;  // first: the timer needs its context to the end
    asio::steady_timer ready_;
    const HttpOptions& options_;
    bool chunked_;
    bool keep_alive_;
    std::mutex mutex_;
    std::string pending_, ping_;
    bool begun_ = false, events_ = false, ended_ = false, closed_ = false;
    bool notified_ = true;  // until next() waits, there is nobody to wake
    int status_ = 0;
    std::function<void()> gone_;
};

}  // namespace exl3::server
