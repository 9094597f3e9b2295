#pragma once
#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace exl3::api {

class TextFeed;

namespace detail {
/// What every parsing coroutine shares: who waits for it, and the feed that runs it.
struct ParseState {
    TextFeed* feed = nullptr;
    std::coroutine_handle<> caller;
    std::exception_ptr failure;
};
}  // namespace detail

/// A parser written as if all its text were there: a coroutine that suspends where the text ends
/// and goes on when more arrives. How the text was cut therefore cannot change what it does.
template <typename T>
class [[nodiscard]] Parse;

/// The text of one parser. push() and finish() run the parser as far as it gets.
class TextFeed {
public:
    static constexpr int kEnd = -1;

    void push(std::string_view piece) {
        text_ += piece;
        run();
    }
    /// No more text comes: peek() yields kEnd from now on.
    void finish() {
        ended_ = true;
        run();
    }

    /// co_await peek(): the next byte (0 to 255), or kEnd. Does not consume it.
    auto peek() {
        struct Peek {
            TextFeed& feed;
            bool await_ready() const { return feed.at_ < feed.text_.size() || feed.ended_; }
            void await_suspend(std::coroutine_handle<> h) const { feed.waiting_ = h; }
            int await_resume() const {
                if (feed.at_ >= feed.text_.size()) return kEnd;
                return static_cast<unsigned char>(feed.text_[feed.at_]);
            }
        };
        return Peek{*this};
    }
    void skip() { ++at_; }  ///< consumes the byte that peek() showed
    size_t position() const { return at_; }
    void rewind(size_t position) { at_ = position; }  ///< back to an earlier position()
    std::string_view since(size_t position) const {
        return std::string_view(text_).substr(position, at_ - position);
    }

    /// Lets a coroutine run from the trampoline of run() instead of from the caller's stack, which
    /// would grow with every call on compilers that do not turn it into a jump.
    void schedule(std::coroutine_handle<> h) { next_ = h; }
    void start(std::coroutine_handle<> h) {
        next_ = h;
        run();
    }

private:
    void run() {
        const bool more = at_ < text_.size() || ended_;
        if (!next_ && waiting_ && more) next_ = std::exchange(waiting_, {});
        while (next_) std::exchange(next_, {}).resume();
    }

    std::string text_;
    size_t at_ = 0;
    bool ended_ = false;
    std::coroutine_handle<> waiting_, next_;
};

namespace detail {
struct ParseEnd {
    bool await_ready() const noexcept { return false; }
    template <typename P>
    void await_suspend(std::coroutine_handle<P> h) const noexcept {
        ParseState& s = h.promise();
        if (s.caller) s.feed->schedule(s.caller);
    }
    void await_resume() const noexcept {}
};
template <typename T>
struct ParsePromise : ParseState {
    std::optional<T> value;
    void return_value(T v) { value = std::move(v); }
    T take() { return std::move(*value); }
};
template <>
struct ParsePromise<void> : ParseState {
    void return_void() {}
    void take() {}
};
}  // namespace detail

template <typename T>
class [[nodiscard]] Parse {
public:
    struct promise_type : detail::ParsePromise<T> {
        Parse get_return_object() {
            return Parse(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        detail::ParseEnd final_suspend() noexcept { return {}; }
        void unhandled_exception() { this->failure = std::current_exception(); }
    };

    Parse(Parse&& o) noexcept : handle_(std::exchange(o.handle_, {})) {}
    Parse(const Parse&) = delete;
    Parse& operator=(const Parse&) = delete;
    Parse& operator=(Parse&&) = delete;
    ~Parse() {
        if (handle_) handle_.destroy();
    }

    /// Runs it as the outermost parser of `feed`, until it needs text.
    void start(TextFeed& feed) {
        handle_.promise().feed = &feed;
        feed.start(handle_);
    }
    bool done() const { return handle_.done(); }
    /// What it threw, once done.
    void rethrow() const {
        if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    }

    bool await_ready() const { return false; }
    template <typename P>
    void await_suspend(std::coroutine_handle<P> caller) {
        detail::ParseState& mine = handle_.promise();
        mine.feed = caller.promise().feed;
        mine.caller = caller;
        mine.feed->schedule(handle_);
    }
    T await_resume() {
        rethrow();
        return handle_.promise().take();
    }

private:
    explicit Parse(std::coroutine_handle<promise_type> h) : handle_(h) {}
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace exl3::api
