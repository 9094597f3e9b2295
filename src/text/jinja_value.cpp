#include "text/jinja_value.h"

#include "text/jinja_unicode.h"

namespace exl3::jinja {

void Heap::link(Container& c) {
    c.next = containers_;
    if (containers_) containers_->previous = &c;
    containers_ = &c;
}

void Heap::unlink(Container& c) {
    if (c.previous) c.previous->next = c.next;
    if (c.next) c.next->previous = c.previous;
    if (containers_ == &c) containers_ = c.next;
    c.next = c.previous = nullptr;
}

Container::~Container() {
    if (heap) heap->unlink(*this);
}

void Heap::retire(Object* object) noexcept {
    live_ -= object->charged;
    object->next_dead = dead_;
    dead_ = object;
    // A deleted object releases others, which land in the list: no recursion, whatever the depth.
    if (deleting_) return;
    deleting_ = true;
    while (dead_) {
        Object* o = dead_;
        dead_ = o->next_dead;
        delete o;
    }
    deleting_ = false;
}

Heap::~Heap() {
    // Once cleared, no container refers to another, so every one of them loses its last reference;
    // those kept by a caller's Value would be a bug of the caller.
    while (Container* c = containers_) {
        ++c->refs;
        c->clear();
        if (--c->refs == 0)
            retire(c);
        else
            unlink(*c);
    }
}

String::String(std::string t, bool m) : text(std::move(t)), markup(m) {
    length = count_code_points(text);
}

int64_t Range::length() const {
    const Int from = start, to = stop, by = step;
    if (by > 0 && from < to) return static_cast<int64_t>((to - from - 1) / by + 1);
    if (by < 0 && from > to) return static_cast<int64_t>((from - to - 1) / -by + 1);
    return 0;
}

}  // namespace exl3::jinja
