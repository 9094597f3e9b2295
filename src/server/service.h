#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/error.h"
#include "api/request.h"
#include "server/http.h"
#include "server/keys.h"
#include "server/loaded_model.h"
#include "server/metrics.h"

namespace exl3::server {

class ResponseStore;

/// One request on its way through the routes.
struct Call {
    std::shared_ptr<Exchange> exchange;
    Access access = Access::nobody;
    api::Family family = api::Family::openai;
    std::string tail;  ///< what stands for the '*' of the route

    const HttpRequest& request() const { return exchange->request(); }
    void reply(int status, const Json& body) const;
};

/// The server behind HTTP: which model answers, who may ask what, and what is counted.
/// All members may be called from any thread.
class Service {
public:
    struct Device {
        std::string name = "auto";
        DeviceOptions options;
    };
    Service(ServerConfig config, Device device);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    /// What an HttpServer calls. The service must outlive the server.
    HttpHandler handler();

    /// Loads a folder, or a name in model_dir; what was loaded before goes first, once it has
    /// answered what it was asked. One load at a time. Throws Error.
    void load(const std::string& name, const LoadProgress& progress = {});
    /// The same with settings of its own.
    void load(const std::string& name, const ServerConfig& with, const LoadProgress& progress);
    /// False if there was nothing to unload. Jobs of the model are cancelled.
    bool unload();
    /// From now on requests are refused with 503.
    void begin_shutdown() { stopping_ = true; }
    /// Answers in progress: how each can be cancelled. The number is for remove_running().
    uint64_t add_running(std::function<void()> cancel);
    void remove_running(uint64_t number);
    /// Cancels all of them; their clients are told.
    void cancel_running();

    /// The model to answer a request that names `name`. Throws ApiError: 503 none is loaded or one
    /// is loading, 404 by policy.
    std::shared_ptr<LoadedModel> model_for(const std::string& name, Access access);
    std::shared_ptr<LoadedModel> model() const;
    bool loading() const { return loading_; }
    /// Folders in model_dir that hold a model, sorted.
    std::vector<std::string> available() const;
    /// The folder of a name in model_dir, or of a path if `paths` is set. Throws ApiError 400.
    std::filesystem::path find_folder(const std::string& name, bool paths) const;

    api::RequestDefaults defaults(const LoadedModel& model) const;
    const ServerConfig& config() const { return config_; }
    Metrics& metrics() { return metrics_; }
    ResponseStore& responses() { return *responses_; }
    bool stopping() const { return stopping_; }

private:
    bool admit(const HttpRequest& head, HttpReply& refusal);
    void handle(const std::shared_ptr<Exchange>& exchange);
    void release_model();
    void add_cors(const HttpRequest& request, Headers& headers) const;

    ServerConfig config_;
    Device device_;
    Keys keys_;
    Metrics metrics_;
    std::unique_ptr<ResponseStore> responses_;
    std::atomic<bool> stopping_ = false, loading_ = false;
    mutable std::mutex model_mutex_;
    std::mutex running_mutex_;
    std::map<uint64_t, std::function<void()>> running_;
    uint64_t next_running_ = 0;
    std::mutex load_mutex_;  // held while a model is loaded or unloaded
    std::shared_ptr<LoadedModel> model_;
};

/// The JSON body of a reply, with its status.
HttpReply json_reply(int status, const Json& body);
/// An error in the words of the family that `path` belongs to.
HttpReply error_reply(const api::ApiError& error, api::Family family, const std::string& id);
api::Family family_of(const HttpRequest& request);

}  // namespace exl3::server
