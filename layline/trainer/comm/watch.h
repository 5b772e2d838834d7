// The failure board: makes every rank of a run know within seconds that one has failed, which one and why.
//
//   Activity activity;
//   GlooFactory factory(store.store(), rank, size, {.timeout = timeout + 10s, .activity = &activity, …});
//   Watch watch(store, {.wait_limit = timeout}, &activity, [&](const Failure& failure) {
//   factory.abort(failure.message); }); try {
//     train();
//     world->barrier();
//     failure = watch.finish();
//   } catch (const CommError& error) {
//     failure = watch.report_loss(error.what());  // most often another rank is to blame, and says so
//   } catch (const std::exception& error) {
//     failure = watch.report(error.what());
//   }
//   if (failure.is_own) print(failure.message);   // once a run
//
// Each rank beats twice a second on the store of rank 0, over a connection of its own, saying what it is doing, and
// looks whether anyone has failed. A failure is: what a rank reports; beats that stand still (a rank killed, stopped or
// cut off); the store out of reach (rank 0 is gone or stopped); two ranks of a group that wait in different calls; a
// wait that lasts longer than wait_limit, which names the ranks that do not wait. The first one written counts for all.
//
// Costs two messages of a hundred bytes a beat, and nothing in the step but Activity's stores.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "layline/trainer/comm/activity.h"
#include "layline/trainer/comm/rendezvous.h"

namespace layline::trainer::comm {

struct WatchOptions {
  std::chrono::milliseconds wait_limit = std::chrono::seconds(300);  // for one wait of a rank for others
  std::chrono::milliseconds interval{500};                           // between beats
  std::chrono::milliseconds stale_after{4000};                       // without a beat a rank counts as lost
  std::chrono::milliseconds grace{1500};  // that a rank which lost another one leaves that one, to say why
};

struct Failure {
  std::string message;  // "rank 2: out of memory"; empty: none
  bool is_own = false;  // this rank is the one that brought it to the board: the one to print it
};

class Watch {
 public:
  // Every rank makes one, at the same time; store outlives it. on_failure is called at most once, on a thread of the
  // watch, when this rank learns of a failure that it did not report itself; it should be quick, as abort() is, and may
  // end the process. Throws base::RunError when the ranks do not meet.
  Watch(const RunStore& store, WatchOptions options, const Activity* activity,
        std::function<void(const Failure&)> on_failure);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // This rank failed: puts "rank R: <reason>" on the board unless a failure is there. Returns the board's. On rank 0 it
  // returns when all others that live have read it, as the board ends with rank 0's process.
  Failure report(const std::string& reason);
  // The same for a CommError, which another rank's failure may have caused: waits a moment for that one to be reported.
  Failure report_loss(const std::string& reason);

  // This rank has ended well, and is watched no more. On rank 0 it returns when all have, or one has failed. Returns
  // the failure, if any.
  Failure finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace layline::trainer::comm
