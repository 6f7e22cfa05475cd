package adrel;

import java.net.ConnectException;
import java.nio.channels.ClosedChannelException;
import java.time.Duration;

/** Why no ad has a score. */
public final class AdrelException extends Exception {
    private static final long serialVersionUID = 1;

    private final String code;
    private final int httpStatus;
    private final Duration retryAfter;
    private final boolean refused;
    private final boolean unanswered;

    private AdrelException(
            String code,
            String message,
            int httpStatus,
            Duration retryAfter,
            boolean refused,
            boolean unanswered,
            Throwable cause) {
        super(code + ": " + message, cause);
        this.code = code;
        this.httpStatus = httpStatus;
        this.retryAfter = retryAfter;
        this.refused = refused;
        this.unanswered = unanswered;
    }

    static AdrelException outOfTime(Duration timeout) {
        String message = "no answer within " + timeout.toNanos() / 1e6 + " ms";
        return new AdrelException("deadline_exceeded", message, 0, null, false, false, null);
    }

    static AdrelException noConnection(Throwable cause) {
        boolean unanswered = wasRefused(cause) || wasClosedUnanswered(cause);
        return new AdrelException(
                "connection_failed", cause.toString(), 0, null, false, unanswered, cause);
    }

    /**
     * Not an unknown host or one without a way there, which the HTTP client wraps too. It tries a
     * refused connection again by itself, on a channel that Java 17 has closed by then.
     */
    private static boolean wasRefused(Throwable failure) {
        Throwable cause = failure.getCause();
        return failure instanceof ConnectException
                && (cause == null
                        || cause instanceof ConnectException
                        || cause instanceof ClosedChannelException);
    }

    /** The HTTP client has no type for it. If it says it otherwise some day, nothing is retried. */
    private static boolean wasClosedUnanswered(Throwable failure) {
        return String.valueOf(failure.getMessage()).endsWith("header parser received no bytes");
    }

    static AdrelException badAnswer(int httpStatus, String problem) {
        return new AdrelException("bad_answer", problem, httpStatus, null, false, false, null);
    }

    static AdrelException ofStatus(
            String code, String message, int httpStatus, Duration retryAfter, boolean refused) {
        return new AdrelException(code, message, httpStatus, retryAfter, refused, false, null);
    }

    /** The service's own, or deadline_exceeded, connection_failed, bad_answer, http_(status). */
    public String code() {
        return code;
    }

    /** 0 where no answer came. */
    public int httpStatus() {
        return httpStatus;
    }

    /** When the service says that trying again may pay; null where it does not. */
    public Duration retryAfter() {
        return retryAfter;
    }

    /** Whether the request is wrong, and would be again. */
    public boolean refused() {
        return refused;
    }

    /** Whether it was refused, or closed before any byte of an answer: worth another try. */
    boolean unanswered() {
        return unanswered;
    }
}
