package adrel;

import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow.Subscription;

/** An answer's body, of no more bytes than it can need; fails with an AdrelException on more. */
final class BoundedBody implements BodySubscriber<byte[]> {
    private final BodySubscriber<byte[]> whole = BodySubscribers.ofByteArray();
    private final int status;
    private final long maxBytes;
    private long nBytes;
    private Subscription subscription;

    BoundedBody(int status, long maxBytes) {
        this.status = status;
        this.maxBytes = maxBytes;
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return whole.getBody();
    }

    @Override
    public void onSubscribe(Subscription given) {
        subscription = given;
        whole.onSubscribe(given);
    }

    @Override
    public void onNext(List<ByteBuffer> pieces) {
        nBytes += pieces.stream().mapToLong(ByteBuffer::remaining).sum();
        if (nBytes <= maxBytes) {
            whole.onNext(pieces);
        } else {
            subscription.cancel(); // closes the connection
            onError(AdrelException.badAnswer(status, "more than " + maxBytes + " bytes"));
        }
    }

    @Override
    public void onError(Throwable failure) {
        whole.onError(failure);
    }

    @Override
    public void onComplete() {
        whole.onComplete();
    }
}
